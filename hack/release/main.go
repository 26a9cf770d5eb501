// Command release packs programs that were built for several platforms into the
// files of a release: an archive for each program and platform, a bill of materials
// for each archive, the checksums of all and their signature, and the manifest by which krew installs
// the plugin.
package main

import (
	"errors"
	"flag"
	"fmt"
	"log"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// plugin is the program that krew installs.
const plugin = "kubectl-karmada"

// programs are what a release has.
func programs() []string { return []string{"karmadactl", plugin} }

// release is what the files of a release are made from.
type release struct {
	// programs is a directory with one of the name "<os>-<arch>" for each platform.
	programs string
	// license and manifest are the paths of files of the repository.
	license, manifest string
	// chart is the packaged Helm chart, or empty.
	chart string
	// out is the directory of the files of the release.
	out string
	// version is "v" and a semantic version.
	version string
	// url is where the files can be downloaded from.
	url string
	// key is the path of the private key that signs the checksums; empty leaves them
	// unsigned.
	key string
	// time of everything in the archives.
	time time.Time
}

func main() {
	var r release
	flag.StringVar(&r.programs, "programs", "_output/release", "directory with the programs, below <os>-<arch>")
	flag.StringVar(&r.license, "license", "LICENSE", "the license, which is in every archive")
	flag.StringVar(&r.manifest, "manifest", "krew-manifest.yaml", "the manifest for krew, without platforms")
	flag.StringVar(&r.chart, "chart", "", "packaged Helm chart to add")
	flag.StringVar(&r.out, "out", "dist", "directory of the release")
	flag.StringVar(&r.version, "version", "", "version of the release, such as v1.2.3")
	flag.StringVar(&r.url, "url", "", "where the files can be downloaded from")
	flag.StringVar(&r.key, "key", "", "private key that signs the checksums, ECDSA on P-256 in PEM; without it they are not signed")
	fresh := flag.String("new-key", "", "make a key in this file, and the public key in FILE.pub, and do nothing else")
	created := flag.Int64("created", 0, "time of the files in seconds since 1970; that of the commit gives the same archives again")
	flag.Parse()
	if *fresh != "" {
		if err := newKey(*fresh); err != nil {
			log.Fatal(err)
		}
		return
	}
	r.time = time.Unix(*created, 0).UTC()
	if err := r.build(); err != nil {
		log.Fatal(err)
	}
}

// platform is an operating system and an architecture.
type platform struct{ os, arch string }

func (p platform) String() string { return p.os + "-" + p.arch }

// executable is the name of a program's file.
func (p platform) executable(program string) string {
	if p.os == "windows" {
		return program + ".exe"
	}
	return program
}

// archive is the name of a program's archive.
func (p platform) archive(program string) string {
	if p.os == "windows" {
		return program + "-" + p.String() + ".zip"
	}
	return program + "-" + p.String() + ".tar.gz"
}

// semver is what krew takes for a version.
var semver = regexp.MustCompile(`^v(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z.-]+)?$`)

// build writes the files of the release.
func (r release) build() error {
	if !semver.MatchString(r.version) {
		return fmt.Errorf("version %q is not like v1.2.3: tag the commit, or set VERSION", r.version)
	}
	platforms, err := r.platforms()
	if err != nil {
		return err
	}
	if r.key != "" { // before anything is packed
		if _, err := readKey(r.key); err != nil {
			return err
		}
	}
	license, err := os.ReadFile(r.license)
	if err != nil {
		return fmt.Errorf("reading the license: %w", err)
	}
	if err := os.MkdirAll(r.out, 0o750); err != nil {
		return fmt.Errorf("making the directory of the release: %w", err)
	}
	sums := map[string]string{}
	for _, p := range platforms {
		for _, program := range programs() {
			if err := r.pack(p, program, license, sums); err != nil {
				return err
			}
		}
	}
	manifest, err := r.krew(platforms, sums)
	if err != nil {
		return err
	}
	if err := errors.Join(r.write("krew-manifest.yaml", manifest, sums), r.addChart(sums)); err != nil {
		return err
	}
	all := checksums(sums)
	if err := r.write(checksumsName, all, nil); err != nil {
		return err
	}
	return r.sign(all)
}

// addChart adds the Helm chart, if there is one.
func (r release) addChart(sums map[string]string) error {
	if r.chart == "" {
		return nil
	}
	chart, err := os.ReadFile(r.chart)
	if err != nil {
		return fmt.Errorf("reading the chart: %w", err)
	}
	return r.write(filepath.Base(r.chart), chart, sums)
}

// checksumsName is the file with the checksums of all others, the bills of
// materials among them.
const checksumsName = "checksums.txt"

// sign signs the checksums, and so every file.
func (r release) sign(checksums []byte) error {
	if r.key == "" {
		return nil
	}
	key, err := readKey(r.key)
	if err != nil {
		return err
	}
	signature, err := sign(key, checksums)
	if err != nil {
		return err
	}
	return r.write(checksumsName+signatureSuffix, signature, nil)
}

// platforms are those that there are programs for, sorted.
func (r release) platforms() ([]platform, error) {
	entries, err := os.ReadDir(r.programs)
	if err != nil {
		return nil, fmt.Errorf("looking for programs: %w", err)
	}
	var out []platform
	for _, e := range entries {
		if name, arch, ok := strings.Cut(e.Name(), "-"); ok && e.IsDir() {
			out = append(out, platform{name, arch})
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("looking for programs: %s has no directory <os>-<arch>", r.programs)
	}
	return out, nil
}

// pack writes the archive of a program and its bill of materials.
func (r release) pack(p platform, program string, license []byte, sums map[string]string) error {
	path := filepath.Join(r.programs, p.String(), p.executable(program))
	data, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("reading a program: %w", err)
	}
	files := []file{
		{name: p.executable(program), mode: 0o755, data: data},
		{name: "LICENSE", mode: 0o644, data: license},
	}
	archive, err := pack(p.archive(program), files, r.time)
	if err != nil {
		return err
	}
	if err := r.write(p.archive(program), archive, sums); err != nil {
		return err
	}
	bill, err := billOfMaterials(path, program, r.version, r.time)
	if err != nil {
		return err
	}
	return r.write(program+"-"+p.String()+".cdx.json", bill, sums)
}

// write writes a file of the release and records its checksum.
func (r release) write(name string, data []byte, sums map[string]string) error {
	if sums != nil {
		sums[name] = digest(data)
	}
	if err := os.WriteFile(filepath.Join(r.out, name), data, 0o600); err != nil {
		return fmt.Errorf("writing %s: %w", name, err)
	}
	return nil
}

// checksums is a file that "sha256sum -c" reads.
func checksums(sums map[string]string) []byte {
	var out strings.Builder
	for _, name := range slices.Sorted(maps.Keys(sums)) {
		out.WriteString(sums[name] + "  " + name + "\n")
	}
	return []byte(out.String())
}

var errNoChecksum = errors.New("it was not packed")
