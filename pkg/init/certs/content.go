// Package certs finds the certificates of an installation, renews them and moves the installation over to new authorities, without an
// interruption.
//
// Whatever keeps certificates, such as Secrets, kubeconfigs, webhook configurations and files, is read as contents. A renewal makes new
// pairs and exchanges them for the old ones wherever these are, so that it needs no configuration, and a copy that another tool made is
// renewed as well.
package certs

import (
	"bytes"
	"context"
	"crypto"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"

	"github.com/karmada-toolkit/karmada/internal/pki"
	"github.com/karmada-toolkit/karmada/pkg/init/components"
)

// Place is where a certificate is.
type Place struct {
	// Kind of the object, or File.
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	// Name of the object, or the path of the file.
	Name string `json:"name"`
	// Key in a Secret or ConfigMap, or the field of another object; Entry is the user or the cluster of a kubeconfig there.
	Key   string `json:"key,omitempty"`
	Entry string `json:"entry,omitempty"`
}

// KindFile is the kind of places in files.
const KindFile = "File"

// String returns the place in a line.
func (p Place) String() string {
	out := p.Kind + " "
	if p.Namespace != "" {
		out += p.Namespace + "/"
	}
	out += p.Name
	if p.Key != "" {
		out += " " + p.Key
	}
	if p.Entry != "" {
		out += " (" + p.Entry + ")"
	}
	return out
}

// content is a text in which certificates and keys are: PEM, or a kubeconfig.
type content struct {
	Place
	data []byte
	// set replaces the text in its holder.
	set    func([]byte)
	holder *holder
	// pem forbids that the text is read as a kubeconfig: it is another's.
	pem bool
	// since is when its Secret was made or its file written, or nil.
	since *time.Time
	// signs reports whether the authorities in it sign for the installation.
	signs bool
	// keepsKey reports whether its key signs the tokens of service accounts too, so that the successor has it as well.
	keepsKey bool
}

// inventory is what has certificates, and what could not be read.
type inventory struct {
	contents []*content
	gaps     []error
}

// signing returns what has the authorities that sign for the installation.
func (i *inventory) signing() []*content {
	return slices.DeleteFunc(slices.Clone(i.contents), func(c *content) bool { return !c.signs })
}

// holder is an object or a file that is written as a whole.
type holder struct {
	save    func(context.Context) error
	changed bool
}

// maxCertificates is how many certificates of one content are read. Others may write some contents.
const maxCertificates = 20

// piece is a certificate or a private key in a content.
type piece struct {
	Place
	// text is where it is, with the chain after a certificate.
	text []byte
	cert *x509.Certificate
	key  crypto.Signer
	// keepsKey is that of the content.
	keepsKey bool
}

// pieces returns the certificates and keys of a content. What cannot be read is left out.
func (c *content) pieces() []piece {
	var out []piece
	add := func(place Place, data []byte) {
		for rest := data; len(out) < maxCertificates; {
			var block *pem.Block
			if block, rest = pem.Decode(rest); block == nil {
				return
			}
			if p := parse(block); p.cert != nil || p.key != nil {
				p.Place, p.text, p.keepsKey = place, data, c.keepsKey
				out = append(out, p)
			}
		}
	}
	config := c.kubeconfig()
	if config == nil {
		add(c.Place, c.data)
		return out
	}
	for _, f := range fields(config) {
		place := c.Place
		place.Entry = f.entry
		add(place, *f.data)
	}
	return out
}

// pieces returns the certificates and keys of contents.
func pieces(contents []*content) iter.Seq[piece] {
	return func(yield func(piece) bool) {
		for _, c := range contents {
			for _, p := range c.pieces() {
				if !yield(p) {
					return
				}
			}
		}
	}
}

// authorities returns the certificates of authorities in contents.
func authorities(contents []*content) iter.Seq[piece] {
	return func(yield func(piece) bool) {
		for p := range pieces(contents) {
			if p.cert != nil && p.cert.IsCA && !yield(p) {
				return
			}
		}
	}
}

// kubeconfig returns the content if it is a kubeconfig, or nil.
func (c *content) kubeconfig() *clientcmdapi.Config {
	if c.pem || !bytes.Contains(c.data, []byte("certificate-authority-data")) && !bytes.Contains(c.data, []byte("client-certificate-data")) {
		return nil
	}
	config, err := clientcmd.Load(c.data)
	if err != nil {
		return nil
	}
	return config
}

// field is a text in a kubeconfig.
type field struct {
	entry string
	data  *[]byte
}

// fields returns the texts with certificates and keys of a kubeconfig, in an order that does not change.
func fields(config *clientcmdapi.Config) []field {
	var out []field
	for _, name := range slices.Sorted(maps.Keys(config.Clusters)) {
		out = append(out, field{"cluster " + name, &config.Clusters[name].CertificateAuthorityData})
	}
	for _, name := range slices.Sorted(maps.Keys(config.AuthInfos)) {
		user := config.AuthInfos[name]
		out = append(out, field{"user " + name, &user.ClientCertificateData}, field{"user " + name, &user.ClientKeyData})
	}
	return out
}

// parse returns the certificate or the private key of a block.
func parse(block *pem.Block) piece {
	if block.Type == cert.CertificateBlockType {
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return piece{}
		}
		return piece{cert: c}
	}
	switch block.Type {
	case keyutil.ECPrivateKeyBlockType, keyutil.RSAPrivateKeyBlockType, keyutil.PrivateKeyBlockType:
		key, err := pki.ParseKey(pem.EncodeToMemory(block))
		if err != nil {
			return piece{}
		}
		return piece{key: key}
	}
	return piece{}
}

// publicKey identifies the pair that a certificate or a key belongs to.
func publicKey(public crypto.PublicKey) string {
	der, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		return "" // of a kind that no certificate has
	}
	return string(der)
}

// exchange is what takes the place of certificates and keys.
type exchange struct {
	// certs has the certificates by the encoding of the one whose place they take; none removes it.
	certs map[string][]*x509.Certificate
	// keys has the private keys by the public key of the one whose place they take.
	keys map[string]crypto.Signer
}

func newExchange() *exchange {
	return &exchange{certs: map[string][]*x509.Certificate{}, keys: map[string]crypto.Signer{}}
}

// apply makes the exchange in contents, and returns those that changed. They are not saved.
func (x *exchange) apply(contents []*content) ([]*content, error) {
	var out []*content
	for _, c := range contents {
		data, err := x.in(c)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.Place, err)
		}
		if bytes.Equal(data, c.data) {
			continue
		}
		c.data = data
		c.set(data)
		c.holder.changed = true
		out = append(out, c)
	}
	return out, nil
}

// in returns a content after the exchange.
func (x *exchange) in(c *content) ([]byte, error) {
	config := c.kubeconfig()
	if config == nil {
		return x.text(c.data, c.Key == components.SigningCA || c.base() == components.SigningCA)
	}
	changed := false
	for _, f := range fields(config) {
		data, err := x.text(*f.data, false)
		if err != nil {
			return nil, err
		}
		changed = changed || !bytes.Equal(data, *f.data)
		*f.data = data
	}
	if !changed {
		return c.data, nil
	}
	out, err := clientcmd.Write(*config)
	if err != nil {
		return nil, fmt.Errorf("encoding the kubeconfig: %w", err)
	}
	return out, nil
}

// text returns a text of PEM after the exchange: the same text if nothing in it changes. one keeps the first certificate alone.
func (x *exchange) text(data []byte, one bool) ([]byte, error) {
	var out bytes.Buffer
	var certs []*x509.Certificate
	changed := false
	for rest := data; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		p := parse(block)
		if p.cert != nil {
			next, ok := x.certs[string(p.cert.Raw)]
			if !ok {
				next = []*x509.Certificate{p.cert}
			}
			changed = changed || ok
			certs = append(certs, next...)
			continue
		}
		next := x.keyFor(p.key)
		if next == nil {
			if err := pem.Encode(&out, block); err != nil {
				return nil, fmt.Errorf("encoding %s: %w", block.Type, err)
			}
			continue
		}
		changed = true
		text, err := pki.EncodeKey(next)
		if err != nil {
			return nil, err
		}
		out.Write(text)
	}
	if !changed {
		return data, nil
	}
	return append(bundle(certs, one), out.Bytes()...), nil
}

func (x *exchange) keyFor(key crypto.Signer) crypto.Signer {
	if key == nil {
		return nil
	}
	return x.keys[publicKey(key.Public())]
}

// bundle returns certificates as PEM, each once.
func bundle(certs []*x509.Certificate, one bool) []byte {
	var out []byte
	seen := map[string]bool{}
	for _, c := range certs {
		if !seen[string(c.Raw)] && (!one || len(seen) == 0) {
			out = append(out, pki.EncodeCert(c)...)
		}
		seen[string(c.Raw)] = true
	}
	return out
}

// save writes what holds changed contents, each once.
func save(ctx context.Context, contents []*content) error {
	for _, c := range contents {
		if !c.holder.changed {
			continue
		}
		if err := c.holder.save(ctx); err != nil {
			return fmt.Errorf("writing %s: %w", c.Place, err)
		}
		c.holder.changed = false
	}
	return nil
}
