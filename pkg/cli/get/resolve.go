package get

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/restmapper"
)

// target is one resource type of the command line, with the requested names; none
// is all.
type target struct {
	arg   string
	names []string
}

// query is a target on a server that serves its type.
type query struct {
	target
	mapping *meta.RESTMapping
}

// parse reads TYPE[,TYPE] [NAME ...] or TYPE/NAME ...
func parse(args []string, selector string) ([]target, error) {
	if slices.ContainsFunc(args, func(a string) bool { return strings.Contains(a, "/") }) {
		return parsePairs(args, selector)
	}
	types := strings.Split(args[0], ",")
	names := args[1:]
	switch {
	case slices.Contains(types, ""):
		return nil, fmt.Errorf("empty resource type in %q; separate types by single commas", args[0])
	case len(names) > 0 && len(types) > 1:
		return nil, errors.New("you must specify only one resource type together with names; write TYPE/NAME for several")
	case len(names) > 0 && selector != "":
		return nil, errors.New("name cannot be provided when a selector is specified")
	case slices.Contains(names, ""):
		return nil, errors.New("resource name may not be empty")
	}
	var out []target
	for _, t := range types {
		out = append(out, target{arg: t, names: names})
	}
	return out, nil
}

// parsePairs reads TYPE/NAME ..., keeping names of one type together.
func parsePairs(args []string, selector string) ([]target, error) {
	if selector != "" {
		return nil, errors.New("selectors and names may not be used together; leave out one of them")
	}
	var out []target
	for _, arg := range args {
		kind, name, found := strings.Cut(arg, "/")
		switch {
		case !found:
			return nil, fmt.Errorf("there is no need to specify a resource type as a separate argument when passing arguments in resource/name form; write TYPE/NAME instead of %q", arg)
		case strings.Contains(name, "/"):
			return nil, fmt.Errorf("arguments in resource/name form may not have more than one slash: %q", arg)
		case kind == "" || name == "" || strings.Contains(kind, ","):
			return nil, fmt.Errorf("arguments in resource/name form must have a single resource and name: %q", arg)
		}
		i := slices.IndexFunc(out, func(t target) bool { return t.arg == kind })
		if i < 0 {
			out = append(out, target{arg: kind, names: []string{name}})
			continue
		}
		out[i].names = append(out[i].names, name)
	}
	return out, nil
}

// types is what a server offers.
type types interface {
	ToRESTMapper() (meta.RESTMapper, error)
	ToDiscoveryClient() (discovery.CachedDiscoveryInterface, error)
}

// resolve finds the resource types of targets on a server. Categories, such as
// all, become the types that are in them. The targets that the server does not know
// are returned too.
func resolve(server types, targets []target) (known []query, unknown []target, err error) {
	mapper, err := server.ToRESTMapper()
	if err != nil {
		return nil, nil, err
	}
	client, err := server.ToDiscoveryClient()
	if err != nil {
		return nil, nil, err
	}
	categories := restmapper.NewDiscoveryCategoryExpander(client)
	for _, t := range targets {
		args := []string{t.arg}
		if members, ok := categories.Expand(t.arg); ok && len(members) > 0 {
			args = nil
			for _, m := range members {
				args = append(args, m.String())
			}
		}
		for _, arg := range args {
			mapping, err := mappingFor(mapper, arg)
			if _, ok := errors.AsType[errUnknownType](err); ok {
				unknown = append(unknown, t)
				continue
			}
			if err != nil {
				return nil, nil, err
			}
			known = append(known, query{target: target{arg: arg, names: t.names}, mapping: mapping})
		}
	}
	return known, unknown, nil
}

// mappingFor finds a type by the plural, singular or short name of its resource,
// or by its kind, each with a group and version or without.
func mappingFor(mapper meta.RESTMapper, arg string) (*meta.RESTMapping, error) {
	full, groupResource := schema.ParseResourceArg(arg)
	var gvk schema.GroupVersionKind
	if full != nil {
		gvk, _ = mapper.KindFor(*full) // an error is met again below
	}
	if gvk.Empty() {
		gvk, _ = mapper.KindFor(groupResource.WithVersion(""))
	}
	if !gvk.Empty() {
		return mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	}
	fullKind, groupKind := schema.ParseKindArg(arg)
	if fullKind != nil {
		if mapping, err := mapper.RESTMapping(fullKind.GroupKind(), fullKind.Version); err == nil {
			return mapping, nil
		}
	}
	mapping, err := mapper.RESTMapping(groupKind)
	if meta.IsNoMatchError(err) {
		return nil, errUnknownType{arg: groupResource.Resource}
	}
	return mapping, err
}
