package framework

// Plugin is a Filter, a Score, or both.
type Plugin interface {
	// Name is the name of the plugin in --plugins.
	Name() string
}

// Filter selects the clusters that a binding may go to. It must not keep or change
// what it is given, and the same input must give the same verdict.
type Filter interface {
	Plugin
	Filter(pass *Pass, cluster *ClusterInfo) Verdict
}

// MaxScore is the largest score that a plugin may give; the smallest is 0.
const MaxScore int64 = 100

// Score ranks the feasible clusters. The scores of all
// plugins are added up.
type Score interface {
	Plugin
	Score(pass *Pass, cluster *ClusterInfo) (int64, error)
}

// Normalizer is a Score that adjusts the scores of all feasible clusters
// together once they are given, to bring them into 0..MaxScore.
type Normalizer interface {
	Score
	Normalize(pass *Pass, scores []int64) error
}

// Verdict is the answer of a filter. The zero value lets the cluster pass.
type Verdict struct {
	// Reason is a text for the user: why the cluster is out. Clusters with the
	// same Reason and Detail are counted together.
	Reason string
	// Detail is appended to the reason, after a space.
	Detail string
	// Failed is set when the filter could not decide; the cluster is rejected too.
	Failed bool
}

// Fits reports whether the cluster passes.
func (v *Verdict) Fits() bool { return v.Reason == "" && !v.Failed }

// String returns the reason with its detail.
func (v *Verdict) String() string {
	if v.Detail == "" {
		return v.Reason
	}
	return v.Reason + " " + v.Detail
}

// Reject returns the verdict that keeps a cluster out.
func Reject(reason string) Verdict { return Verdict{Reason: reason} }
