"""What people judge and mark on the video independently: rounds, answers, marks, rulings."""
