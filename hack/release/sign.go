package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
)

// signatureSuffix ends the name of the signature of a file.
const signatureSuffix = ".sig"

// sign returns the signature of data as cosign makes it: ECDSA over the SHA-256
// of the data, ASN.1, in base64. "cosign verify-blob --key KEY.pub --signature FILE.sig FILE"
// checks it, as does openssl.
func sign(key *ecdsa.PrivateKey, data []byte) ([]byte, error) {
	sum := sha256.Sum256(data)
	signature, err := ecdsa.SignASN1(rand.Reader, key, sum[:])
	if err != nil {
		return nil, fmt.Errorf("signing: %w", err)
	}
	return []byte(base64.StdEncoding.EncodeToString(signature)), nil
}

// readKey reads the private key of releases: ECDSA on P-256, PEM, SEC 1 or PKCS #8.
// Others must not be able to read the file.
func readKey(path string) (*ecdsa.PrivateKey, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("reading the signing key: %w", err)
	}
	if info.Mode().IsRegular() && info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("the signing key %s can be read by others (mode %o): run \"chmod 600 %[1]s\", and make a new key if it may have been read", path, info.Mode().Perm())
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading the signing key: %w", err)
	}
	key, err := parseKey(data)
	if err != nil {
		return nil, fmt.Errorf("the signing key %s: %w", path, err)
	}
	return key, nil
}

func parseKey(data []byte) (*ecdsa.PrivateKey, error) {
	for {
		block, rest := pem.Decode(data)
		if block == nil {
			return nil, errors.New("it holds no private key in PEM")
		}
		var key any
		var err error
		switch block.Type {
		case "EC PRIVATE KEY":
			key, err = x509.ParseECPrivateKey(block.Bytes)
		case "PRIVATE KEY":
			key, err = x509.ParsePKCS8PrivateKey(block.Bytes)
		case "ENCRYPTED SIGSTORE PRIVATE KEY", "ENCRYPTED COSIGN PRIVATE KEY":
			return nil, errors.New("it is encrypted by cosign: leave SIGNING_KEY out, and run \"cosign sign-blob --key KEY --output-signature dist/checksums.txt.sig dist/checksums.txt\"")
		default:
			data = rest
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("reading the private key: %w", err)
		}
		ec, ok := key.(*ecdsa.PrivateKey)
		if !ok || ec.Curve != elliptic.P256() {
			return nil, errors.New("it is not an ECDSA key on P-256, which cosign verifies with")
		}
		return ec, nil
	}
}

// newKey writes a new private key to path, and its public key to path.pub. It
// replaces no file.
func newKey(path string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("making a key: %w", err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return fmt.Errorf("encoding the key: %w", err)
	}
	public, err := publicKey(key)
	if err != nil {
		return err
	}
	if err := writeNew(path, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}), 0o600); err != nil {
		return err
	}
	return writeNew(path+".pub", public, 0o644)
}

// publicKey returns the public key as cosign reads it.
func publicKey(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		return nil, fmt.Errorf("encoding the public key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}), nil
}

func writeNew(path string, data []byte, mode os.FileMode) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return fmt.Errorf("writing the key: %w", err)
	}
	_, err = file.Write(data)
	return errors.Join(err, file.Close())
}
