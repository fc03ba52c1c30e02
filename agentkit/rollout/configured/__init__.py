"""Tools from configuration, as verl and open-instruct write it."""
