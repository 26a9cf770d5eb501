package accesstest

import (
	"encoding/json"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/uuid"
)

// storage holds the objects and the history of their changes.
type storage struct {
	mu       sync.Mutex
	version  int
	objects  map[string]*unstructured.Unstructured // by path
	watchers map[chan event]string                 // by channel: the path of the collection
	history  []event
}

type event struct {
	kind string
	path string
	obj  *unstructured.Unstructured
}

func newStorage() *storage {
	return &storage{objects: map[string]*unstructured.Unstructured{}, watchers: map[chan event]string{}, version: 100}
}

func (s *storage) putLocked(path string, obj *unstructured.Unstructured) *unstructured.Unstructured {
	old := s.objects[path]
	s.version++
	obj.SetResourceVersion(strconv.Itoa(s.version))
	kind := "MODIFIED"
	if old == nil {
		kind = "ADDED"
		obj.SetUID(uuid.NewUUID())
		obj.SetGeneration(1)
		obj.SetCreationTimestamp(metav1.Unix(1, 0))
	} else {
		obj.SetUID(old.GetUID())
		obj.SetCreationTimestamp(old.GetCreationTimestamp())
		obj.SetGeneration(old.GetGeneration())
		if !equal(old.Object["spec"], obj.Object["spec"]) {
			obj.SetGeneration(old.GetGeneration() + 1)
		}
	}
	s.objects[path] = obj
	s.publishLocked(event{kind, path, obj.DeepCopy()})
	return obj
}

func (s *storage) removeLocked(path string) {
	obj := s.objects[path]
	if obj == nil {
		return
	}
	delete(s.objects, path)
	s.version++
	obj.SetResourceVersion(strconv.Itoa(s.version))
	s.publishLocked(event{"DELETED", path, obj})
}

func (s *storage) publishLocked(e event) {
	s.history = append(s.history, e)
	for ch, collection := range s.watchers {
		if matches(e.path, collection) {
			ch <- e
		}
	}
}

// list returns the objects of a collection that are selected.
func (s *storage) list(collection string, selected func(*unstructured.Unstructured) bool) *unstructured.UnstructuredList {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := &unstructured.UnstructuredList{Object: map[string]any{"apiVersion": "v1", "kind": "List"}}
	list.SetResourceVersion(strconv.Itoa(s.version))
	for _, at := range slices.Sorted(maps.Keys(s.objects)) {
		if matches(at, collection) && selected(s.objects[at]) {
			list.Items = append(list.Items, *s.objects[at].DeepCopy())
		}
	}
	if kind := map[string]string{"pods": "PodList", "nodes": "NodeList"}[path.Base(collection)]; kind != "" {
		list.SetKind(kind)
	}
	if len(list.Items) > 0 {
		list.SetAPIVersion(list.Items[0].GetAPIVersion())
		list.SetKind(list.Items[0].GetKind() + "List")
	}
	return list
}

// watch returns the changes of a collection after a version.
func (s *storage) watch(collection string, since int) (ch chan event, stop func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ch = make(chan event, 1000)
	for _, e := range s.history {
		if v, _ := strconv.Atoi(e.obj.GetResourceVersion()); matches(e.path, collection) && v > since {
			ch <- e
		}
	}
	s.watchers[ch] = collection
	return ch, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.watchers, ch)
	}
}

// matches reports whether an object's path is in a collection. The path of a
// collection of all namespaces has no namespace.
func matches(path, collection string) bool {
	if parts := strings.Split(path, "/namespaces/"); len(parts) == 2 && !strings.Contains(collection, "/namespaces/") {
		if _, rest, ok := strings.Cut(parts[1], "/"); ok {
			path = parts[0] + "/" + rest
		}
	}
	rest, ok := strings.CutPrefix(path, collection+"/")
	return ok && !strings.Contains(rest, "/")
}

func equal(a, b any) bool {
	x, err1 := json.Marshal(a)
	y, err2 := json.Marshal(b)
	return err1 == nil && err2 == nil && string(x) == string(y)
}

// Backup is a copy of the objects of a Server.
type Backup struct {
	version int
	objects map[string]*unstructured.Unstructured
	history []event
}

// Backup returns a copy of the objects.
func (s *Server) Backup() Backup {
	s.storage.mu.Lock()
	defer s.storage.mu.Unlock()
	return Backup{version: s.storage.version, objects: maps.Clone(s.storage.objects), history: slices.Clone(s.storage.history)}
}

// Restore replaces the objects by those of a backup, as a cluster does that is restored
// from an older copy of its store: its connections are closed, and its resource versions go
// back. After that, other objects are written the given number of times.
func (s *Server) Restore(b Backup, writes int) {
	s.storage.mu.Lock()
	s.storage.objects, s.storage.history = maps.Clone(b.objects), slices.Clone(b.history)
	s.storage.version = b.version + writes
	s.storage.watchers = map[chan event]string{}
	s.storage.mu.Unlock()
	s.CloseClientConnections()
}
