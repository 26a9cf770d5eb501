package main

import (
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestBuild_SignsTheChecksums(t *testing.T) {
	key := filepath.Join(t.TempDir(), "release.key")
	if err := newKey(key); err != nil {
		t.Fatal(err)
	}
	if err := newKey(key); err == nil {
		t.Error("a key was replaced")
	}
	r := fixture(t, platform{"linux", "amd64"})
	r.key = key
	if err := r.build(); err != nil {
		t.Fatal(err)
	}
	read := func(path string) []byte {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	sums := read(filepath.Join(r.out, "checksums.txt"))
	signature, err := base64.StdEncoding.DecodeString(string(read(filepath.Join(r.out, "checksums.txt.sig"))))
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(read(key + ".pub"))
	public, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(sums)
	if !ecdsa.VerifyASN1(public.(*ecdsa.PublicKey), sum[:], signature) {
		t.Error("the signature does not verify")
	}
	sum = sha256.Sum256(append(sums, '\n'))
	if ecdsa.VerifyASN1(public.(*ecdsa.PublicKey), sum[:], signature) {
		t.Error("the signature verifies other checksums")
	}
	openssl, err := exec.LookPath("openssl")
	if err != nil {
		return // the library has verified it above
	}
	raw := filepath.Join(t.TempDir(), "raw")
	if err := os.WriteFile(raw, signature, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(openssl, "dgst", "-sha256", "-verify", key+".pub", "-signature", raw, filepath.Join(r.out, "checksums.txt")).CombinedOutput(); err != nil {
		t.Errorf("openssl: %v\n%s", err, out)
	}
}

func TestReadKey_RefusesWhatCannotBeUsed(t *testing.T) {
	dir := t.TempDir()
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	good := filepath.Join(dir, "good")
	if err := newKey(good); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(good)
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		data []byte
		mode os.FileMode
		want string
	}{
		"readable": {data, 0o644, "can be read by others"},
		"rsa":      {pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: must(t)(x509.MarshalPKCS8PrivateKey(rsaKey))}), 0o600, "not an ECDSA key on P-256"},
		"cosign":   {pem.EncodeToMemory(&pem.Block{Type: "ENCRYPTED SIGSTORE PRIVATE KEY", Bytes: []byte("x")}), 0o600, "cosign sign-blob"},
		"text":     {[]byte("secret"), 0o600, "no private key"},
	} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, tc.data, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, tc.mode); err != nil {
			t.Fatal(err)
		}
		if _, err := readKey(path); err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func must(t *testing.T) func([]byte, error) []byte {
	t.Helper()
	return func(data []byte, err error) []byte {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
}
