// Package proxy carries requests to member clusters on behalf of users: the
// subresource proxy of a cluster. A request is sent with the impersonator's token
// and the name and groups of the user who made it. The name "*" stands for all
// clusters.
package proxy
