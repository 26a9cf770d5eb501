package names

// Users as which the parts of a control plane authenticate. Each has the rights of
// the ClusterRole of the same name.
const (
	// ComponentUserPrefix begins the user of every component.
	ComponentUserPrefix = "system:karmada:"
	// WebhookClientUser is the common name of the client certificate that the API
	// server presents to the webhook server. It has no rights in the control plane.
	WebhookClientUser = ComponentUserPrefix + "apiserver-webhook-client"
)

// ComponentUser returns the user of a component by the name of its role, such as
// "controller-manager".
func ComponentUser(role string) string { return ComponentUserPrefix + role }
