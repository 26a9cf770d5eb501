// Package validation checks the objects of the federation beyond their schemas.
// Every function is pure and returns all problems it finds, each with the path of
// its field: the admission webhook, the aggregated API server, the CLI and tests
// call the same functions and return the same errors.
package validation
