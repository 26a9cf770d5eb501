package replicas

// Graded reports whether the nodes of the cluster are modeled by grade, so that they count and not the sum of what is
// free.
func (c *Capacity) Graded() bool { return c.graded }
