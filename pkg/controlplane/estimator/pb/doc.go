// Package pb has the messages and the service of the accurate estimators, generated from messages.proto and
// service.proto, and conversions between the messages and the API types.
package pb

// MetadataObject is the key of the gRPC metadata that names the object of a request, for the log of the server.
const MetadataObject = "object"
