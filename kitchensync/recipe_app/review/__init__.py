"""What people judge and mark on the film, each alone: rounds, answers, marks, rulings."""
