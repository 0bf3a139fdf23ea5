"""The publisher: takes the events of a search, renders its best candidates, verifies them and hands them to a store."""
