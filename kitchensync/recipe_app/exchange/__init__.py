"""Import and export of files: adopted videos, dumps of tablets, recording folders, published annotations."""
