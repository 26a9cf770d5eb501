package phases

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/karmada-toolkit/karmada/internal/pki"
	"github.com/karmada-toolkit/karmada/internal/version"
	"github.com/karmada-toolkit/karmada/pkg/init/components"
	"github.com/karmada-toolkit/karmada/pkg/init/config"
)

//go:embed examples/*.yaml
var examples embed.FS

// writeExamples writes manifests to start from, unless they are there.
func writeExamples(dir, namespace string) error {
	release := version.Get().Release()
	replace := strings.NewReplacer(
		"NAMESPACE", namespace, "AGENT_IMAGE", config.DefaultImage("karmada-agent", release), "ESTIMATOR_IMAGE", config.DefaultImage(components.Estimator, release),
	)
	for _, name := range []string{"karmada-agent.yaml", "karmada-scheduler-estimator.yaml"} {
		path := filepath.Join(dir, name)
		if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
			continue
		}
		example, err := examples.ReadFile("examples/" + name)
		if err != nil {
			return fmt.Errorf("reading the example %s: %w", name, err)
		}
		text := replace.Replace(string(example))
		if err := pki.WriteFile(path, []byte(text), 0o640); err != nil {
			return fmt.Errorf("writing %s: %w", path, err)
		}
	}
	return nil
}
