"""Operations entered on the tablet, and the steps and errors computed from them."""
