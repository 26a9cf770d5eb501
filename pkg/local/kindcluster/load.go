package kindcluster

import (
	"context"
	"fmt"

	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/kind/pkg/cluster"
	"sigs.k8s.io/kind/pkg/log"
)

// LoadImages loads the images of an archive into every node of the kind cluster
// whose API server is at server, and returns the name of the cluster. Clusters that
// are not of kind, or not of this machine, are an error.
func LoadImages(ctx context.Context, getenv func(string) string, server, archive string) (string, error) {
	e, err := findEngine(ctx, getenv)
	if err != nil {
		return "", err
	}
	return loadImages(ctx, cluster.NewProvider(e.option, cluster.ProviderWithLogger(log.NoopLogger{})), server, archive)
}

func loadImages(ctx context.Context, lib library, server, archive string) (string, error) {
	name, err := kindClusterAt(lib, server)
	if err != nil {
		return "", err
	}
	hosts, err := internalNodes(lib, name)
	if err != nil {
		return "", err
	}
	for _, node := range hosts {
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		if err := loadArchive(node, archive); err != nil {
			return "", newLibraryLog().explain(fmt.Errorf("loading %s into node %s: %w", archive, node, err))
		}
	}
	return name, nil
}

// kindClusterAt returns the name of the kind cluster with an API server at a URL.
func kindClusterAt(lib library, server string) (string, error) {
	names, err := lib.List()
	if err != nil {
		return "", fmt.Errorf("listing kind clusters: %w", err)
	}
	for _, name := range names {
		for _, internal := range []bool{false, true} {
			text, err := lib.KubeConfig(name, internal)
			if err != nil {
				continue // it is being removed
			}
			cfg, err := clientcmd.RESTConfigFromKubeConfig([]byte(text))
			if err == nil && cfg.Host == server {
				return name, nil
			}
		}
	}
	return "", fmt.Errorf("the cluster at %s is not a kind cluster of this machine: bring the images to its nodes in another way, or leave out --load-images", server)
}
