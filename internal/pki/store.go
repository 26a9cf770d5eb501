package pki

import (
	"crypto"
	"errors"
	"fmt"
	"io/fs"
	"time"
)

// Storage keeps named blobs. Read returns an error that is fs.ErrNotExist for a name it does not have.
type Storage interface {
	Read(name string) ([]byte, error)
	Write(name string, data []byte, secret bool) error
}

// Store loads certificates from a Storage and makes those that are missing. Names are given without extension:
// certificates are kept as NAME.crt, private keys as NAME.key.
type Store struct {
	Storage Storage
	// Now is the clock.
	Now func() time.Time
	// Early is how much earlier than usual certificates are made again before their end.
	Early time.Duration
}

// CA loads the authority name, the first certificate of NAME.crt, or makes it. An existing authority is never replaced, only completed: an expired
// or damaged one is an error, since everything it signed would stop being trusted.
func (s Store) CA(name string, cfg CAConfig) (Pair, error) {
	certPEM, err := s.read(name + ".crt")
	if err != nil {
		return Pair{}, err
	}
	keyPEM, err := s.read(name + ".key")
	if err != nil {
		return Pair{}, err
	}
	switch {
	case certPEM != nil && keyPEM != nil:
		return s.loadCA(name, certPEM, keyPEM)
	case certPEM != nil:
		return Pair{}, fmt.Errorf("authority %q has a certificate but no key: put %s.key back or remove %s.crt", name, name, name)
	}
	var key crypto.Signer
	if keyPEM != nil { // an earlier run was interrupted between the two writes
		if key, err = ParseKey(keyPEM); err != nil {
			return Pair{}, fmt.Errorf("reading %s.key: %w", name, err)
		}
	}
	ca, err := NewCA(cfg, key, s.Now())
	if err != nil {
		return Pair{}, err
	}
	return ca, s.Save(name, ca)
}

func (s Store) loadCA(name string, certPEM, keyPEM []byte) (Pair, error) {
	ca, err := ParsePair(certPEM, keyPEM)
	if err == nil {
		err = VerifyCA(ca, s.Now())
	}
	if err != nil {
		return Pair{}, fmt.Errorf("authority %q: %w: put the right files back, change it with \"certs renew --ca\", or remove both to start with a new authority", name, err)
	}
	return ca, nil
}

// Leaf loads the certificate name, or makes it: also when it is unreadable, near its end, signed by another authority
// or does not satisfy cfg.
func (s Store) Leaf(name string, cfg LeafConfig, ca Pair) (Pair, error) {
	certPEM, err := s.read(name + ".crt")
	if err != nil {
		return Pair{}, err
	}
	keyPEM, err := s.read(name + ".key")
	if err != nil {
		return Pair{}, err
	}
	if pair, err := ParsePair(certPEM, keyPEM); err == nil && RenewReason(pair, cfg, ca.Cert, s.Now().Add(s.Early)) == "" {
		return pair, nil
	}
	pair, err := NewLeaf(cfg, ca, s.Now())
	if err != nil {
		return Pair{}, err
	}
	return pair, s.Save(name, pair)
}

// Key loads the private key name, or makes it. Like an authority it is never replaced.
func (s Store) Key(name string, a Algorithm) (crypto.Signer, error) {
	data, err := s.read(name + ".key")
	if err != nil {
		return nil, err
	}
	if data != nil {
		key, err := ParseKey(data)
		if err != nil {
			return nil, fmt.Errorf("reading %s.key: %w", name, err)
		}
		return key, nil
	}
	key, err := NewKey(a)
	if err != nil {
		return nil, err
	}
	return key, s.saveKey(name, key)
}

// Save writes a pair, key first.
func (s Store) Save(name string, pair Pair) error {
	if err := s.saveKey(name, pair.Key); err != nil {
		return err
	}
	if err := s.Storage.Write(name+".crt", pair.CertPEM(), false); err != nil {
		return fmt.Errorf("writing %s.crt: %w", name, err)
	}
	return nil
}

func (s Store) saveKey(name string, key crypto.Signer) error {
	data, err := EncodeKey(key)
	if err != nil {
		return err
	}
	if err := s.Storage.Write(name+".key", data, true); err != nil {
		return fmt.Errorf("writing %s.key: %w", name, err)
	}
	return nil
}

// read returns nil for a name that does not exist.
func (s Store) read(name string) ([]byte, error) {
	data, err := s.Storage.Read(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", name, err)
	}
	return data, nil
}
