"""The commands of data sets: annotations, exports, measures, and the parts of a release."""
