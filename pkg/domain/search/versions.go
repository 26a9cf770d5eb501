// Package search translates the versions and tokens of several clusters from and into those of one API server, and decides
// which objects of the clusters are cached.
package search

import (
	"encoding/base64"
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// zeroVersion requests any version that is at hand, as the resourceVersion "0" of a list.
const zeroVersion = "0"

// encoding is that of versions and tokens: both are parts of URLs.
var encoding = base64.RawURLEncoding

// Versions are the resourceVersions of one resource in several clusters. The zero value has none.
type Versions struct {
	// Zero reports whether clusters without a version of their own have the version "0".
	Zero bool
	of   map[string]string
}

// NewVersions returns the versions of the named clusters.
func NewVersions(of map[string]string) Versions {
	return Versions{of: maps.Clone(of)}
}

// DecodeVersions reads a resourceVersion as Encode writes it; "" and "0" are valid. It reports whether the version is
// valid, and returns no versions if not.
func DecodeVersions(resourceVersion string) (Versions, bool) {
	switch resourceVersion {
	case "":
		return Versions{}, true
	case zeroVersion:
		return Versions{Zero: true}, true
	}
	data, err := encoding.DecodeString(resourceVersion)
	if err != nil {
		return Versions{}, false
	}
	var of map[string]string
	if err := json.Unmarshal(data, &of); err != nil {
		return Versions{}, false
	}
	return Versions{of: of}, true
}

// Encode returns the resourceVersion of the merged list: a JSON object of the versions, sorted by cluster, in the URL-safe
// base64 encoding without padding; "0" or "" if no cluster has a version.
func (v Versions) Encode() string {
	if len(v.of) == 0 {
		if v.Zero {
			return zeroVersion
		}
		return ""
	}
	data, err := json.Marshal(v.of)
	if err != nil {
		return ""
	}
	return encoding.EncodeToString(data)
}

// Get returns the version of a cluster: "" if it has none.
func (v Versions) Get(cluster string) string {
	if version, ok := v.of[cluster]; ok {
		return version
	}
	if v.Zero {
		return zeroVersion
	}
	return ""
}

// Has reports whether a cluster has a version of its own.
func (v Versions) Has(cluster string) bool {
	_, ok := v.of[cluster]
	return ok
}

// With returns the versions with that of one cluster replaced. The version "0" adds nothing to versions that are all "0".
func (v Versions) With(cluster, version string) Versions {
	if v.Zero && version == zeroVersion && !v.Has(cluster) {
		return v
	}
	of := maps.Clone(v.of)
	if of == nil {
		of = map[string]string{}
	}
	of[cluster] = version
	return Versions{Zero: v.Zero, of: of}
}

// Without returns the versions without those of one cluster and of its objects.
func (v Versions) Without(cluster string) Versions {
	of := maps.Clone(v.of)
	delete(of, cluster)
	delete(of, objectMark+cluster)
	return Versions{Zero: v.Zero, of: of}
}

// objectMark begins the name under which the version of one object is encoded. No cluster has such a name.
const objectMark = "~"

// WithObject returns the versions with that of one object of a cluster, from which no watch begins: the changes of the cluster
// up to it are not known.
func (v Versions) WithObject(cluster, version string) Versions {
	return v.With(objectMark+cluster, version)
}

// Object returns the version of the object of a cluster that has the versions: "" if there is none.
func (v Versions) Object(cluster string) string {
	if version, ok := v.of[objectMark+cluster]; ok {
		return version
	}
	return v.Get(cluster)
}

// OfClusters returns the versions without that of an object.
func (v Versions) OfClusters() Versions {
	out := Versions{Zero: v.Zero, of: maps.Clone(v.of)}
	maps.DeleteFunc(out.of, func(name, _ string) bool { return strings.HasPrefix(name, objectMark) })
	return out
}

// Clusters returns the names of the clusters that have a version, in ascending order.
func (v Versions) Clusters() []string {
	return slices.Sorted(maps.Keys(v.of))
}

// Continue is where the next page of a list begins.
type Continue struct {
	// Versions are those of the first page.
	Versions Versions
	// Cluster is the first cluster of the page: "" for the first cluster of all.
	Cluster string
	// Token is the continue token of that cluster: "" if its list has not begun.
	Token string
}

// continueJSON is the form of a Continue in a token.
type continueJSON struct {
	Versions string `json:"rv"`
	Cluster  string `json:"cluster,omitempty"`
	Token    string `json:"continue,omitempty"`
}

// DecodeContinue reads a token as Encode writes it. It reports whether the token is valid, and returns that of the first page
// if not. Versions in a valid token that cannot be read count as none.
func DecodeContinue(token string) (Continue, bool) {
	data, err := encoding.DecodeString(token)
	if err != nil {
		return Continue{}, false
	}
	var in continueJSON
	if err := json.Unmarshal(data, &in); err != nil {
		return Continue{}, false
	}
	versions, _ := DecodeVersions(in.Versions)
	return Continue{Versions: versions, Cluster: in.Cluster, Token: in.Token}, true
}

// Encode returns the token of a page: a JSON object in the URL-safe base64 encoding without padding.
func (c Continue) Encode() string {
	data, err := json.Marshal(continueJSON{Versions: c.Versions.Encode(), Cluster: c.Cluster, Token: c.Token})
	if err != nil {
		return ""
	}
	return encoding.EncodeToString(data)
}
