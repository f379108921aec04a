"""Examples of the form of ProMQA: what comes next, what was missed, what went wrong, asked where a step has ended."""
