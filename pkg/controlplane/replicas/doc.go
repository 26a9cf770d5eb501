// Package replicas holds the arithmetic of replicas: how a number of them is
// divided between clusters (Dispense) and how many of them a cluster could
// still take (Capacity). It is pure: the same values give the same answer.
package replicas
