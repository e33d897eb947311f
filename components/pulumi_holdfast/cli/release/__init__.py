"""What a release consists of, built so that anyone who builds it again gets the same bytes."""
