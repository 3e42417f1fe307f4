module spillway.dev/testbed/pause

go 1.25.0
