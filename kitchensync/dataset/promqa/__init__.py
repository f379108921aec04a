"""Examples in the form of ProMQA: what comes next, what was missed, what went wrong, asked at the end of a step."""
