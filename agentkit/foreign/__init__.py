"""What other toolkits call what agentkit has, and what is answered to those names. Tables, mostly."""
