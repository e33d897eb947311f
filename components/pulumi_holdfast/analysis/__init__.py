"""What spot saves: economics from rates, replays of recorded availability, and the simulation that both tests and replays use."""
