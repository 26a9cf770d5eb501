package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/flate"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"time"
)

// file is a file of an archive.
type file struct {
	name string
	mode fs.FileMode
	data []byte
}

func digest(data []byte) string { return fmt.Sprintf("%x", sha256.Sum256(data)) }

// pack puts files into an archive of the kind that its name has. The same files
// and time give the same archive.
func pack(name string, files []file, at time.Time) ([]byte, error) {
	packer := packTar
	if strings.HasSuffix(name, ".zip") {
		packer = packZip
	}
	var out bytes.Buffer
	if err := packer(&out, files, at); err != nil {
		return nil, fmt.Errorf("packing %s: %w", name, err)
	}
	return out.Bytes(), nil
}

func packTar(out io.Writer, files []file, at time.Time) error {
	compressed, err := gzip.NewWriterLevel(out, gzip.BestCompression)
	if err != nil {
		return err
	}
	archive := tar.NewWriter(compressed)
	for _, f := range files {
		header := &tar.Header{Name: f.name, Mode: int64(f.mode), Size: int64(len(f.data)), ModTime: at, Format: tar.FormatUSTAR}
		if err := archive.WriteHeader(header); err != nil {
			return err
		}
		if _, err := archive.Write(f.data); err != nil {
			return err
		}
	}
	if err := archive.Close(); err != nil {
		return err
	}
	return compressed.Close()
}

func packZip(out io.Writer, files []file, at time.Time) error {
	archive := zip.NewWriter(out)
	archive.RegisterCompressor(zip.Deflate, func(w io.Writer) (io.WriteCloser, error) {
		return flate.NewWriter(w, flate.BestCompression)
	})
	for _, f := range files {
		header := &zip.FileHeader{Name: f.name, Method: zip.Deflate, Modified: at}
		header.SetMode(f.mode)
		w, err := archive.CreateHeader(header)
		if err != nil {
			return err
		}
		if _, err := w.Write(f.data); err != nil {
			return err
		}
	}
	return archive.Close()
}
