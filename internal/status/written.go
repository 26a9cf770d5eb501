// Package status writes the status of objects in controllers that read them from a cache: once per change, although
// the cache may be behind their own writes, other controllers may write too, and a restore of etcd may undo a write.
package status

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// WrittenTTL is how long a written status counts as the stored one while the cache shows an older version. After a
// restore of etcd resource versions are lower than before, so the cache never reaches the version of the write.
// A controller that wrote a status must reconcile the object again after that to notice, see Written.Pending.
const WrittenTTL = 30 * time.Second

// Written is the last status that a controller wrote to one object. The zero value stands for none. It is not safe for
// concurrent use.
type Written[S any] struct {
	status  S
	uid     types.UID
	version string // empty: the cache has the current status
	at      time.Time
}

// Record stores the status of an object as a write at the time now returned it.
func (w *Written[S]) Record(obj metav1.Object, status S, now time.Time) {
	*w = Written[S]{status: status, uid: obj.GetUID(), version: obj.GetResourceVersion(), at: now}
}

// Latest returns the later of the status that the cache shows for obj and the written one, and its resource version.
func (w *Written[S]) Latest(obj metav1.Object, cached S, now time.Time) (S, string) {
	if w.version != "" && w.uid == obj.GetUID() && Newer(w.version, obj.GetResourceVersion()) && now.Sub(w.at) < WrittenTTL {
		return w.status, w.version
	}
	var none S
	w.status, w.version = none, ""
	return cached, obj.GetResourceVersion()
}

// Pending returns how long a written status still counts while the cache shows an older version, as of the last call
// of Latest: when to reconcile the object again. It returns 0 if the cache has caught up.
func (w *Written[S]) Pending(now time.Time) time.Duration {
	if w.version == "" {
		return 0
	}
	return max(0, w.at.Add(WrittenTTL).Sub(now))
}

// At returns the time of the last write; zero if there was none.
func (w *Written[S]) At() time.Time { return w.at }

// Newer reports whether resource version a is later than b. Versions that cannot be compared are taken for newer when
// they differ.
func Newer(a, b string) bool {
	if order, err := resourceversion.CompareResourceVersion(a, b); err == nil {
		return order > 0
	}
	return a != b
}
