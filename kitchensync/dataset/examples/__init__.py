"""What examples for models need beside their texts: clips, pictures, answers, verified questions."""
