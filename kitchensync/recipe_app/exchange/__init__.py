"""What comes in and goes out as files: adopted films, dumps of tablets, recording folders, published annotations."""
