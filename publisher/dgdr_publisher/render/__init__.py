"""Candidate and deployment settings in, DynamoGraphDeployment out. Pure."""
