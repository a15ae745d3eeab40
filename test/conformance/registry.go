// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"time"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// A spec asks for an image with the pull policy Always, and machines have no way to registry.k8s.io. So each has a
// registry on its own loopback, which containerd asks in place of that one and which knows the images that are loaded
// and no other.
const (
	registryName    = "registry.k8s.io"
	registryAddress = "127.0.0.1:5099"
	registryHosts   = "server = \"http://" + registryAddress + "\"\n" // containerd's hosts.toml for that name
	contentStore    = "/var/lib/containerd/io.containerd.content.v1.content/blobs/sha256"
)

// serveRegistry is what runs on a machine, until ctx ends. It reads the index of the archive that was loaded.
func serveRegistry(ctx context.Context, in io.Reader) error {
	var index ocispec.Index
	if err := json.NewDecoder(in).Decode(&index); err != nil {
		return fmt.Errorf("reading the index of images from standard input: %w", err)
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", registryAddress)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: registry(index, contentStore), ReadHeaderTimeout: 10 * time.Second}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// registry answers as https://github.com/opencontainers/distribution-spec says for pulls. Blobs are in a directory, by
// the hash of their digest.
func registry(index ocispec.Index, blobs string) http.Handler {
	tags := map[string]ocispec.Descriptor{}
	types := map[digest.Digest]string{}
	for _, manifest := range index.Manifests {
		tags[manifest.Annotations[nameAnnotation]] = manifest
		types[manifest.Digest] = manifest.MediaType
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path, ok := strings.CutPrefix(r.URL.Path, "/v2/")
		if !ok || r.Method != http.MethodGet && r.Method != http.MethodHead {
			http.NotFound(w, r)
			return
		}
		if path == "" { // asked whether this is a registry
			return
		}
		name, reference := filepath.Split(path)
		name = strings.TrimSuffix(strings.TrimSuffix(name, "/manifests/"), "/blobs/")
		wanted := digest.Digest(reference)
		if manifest, ok := tags[registryName+"/"+name+":"+reference]; ok {
			wanted = manifest.Digest
		}
		if wanted.Validate() != nil {
			http.NotFound(w, r)
			return
		}
		mediaType := types[wanted]
		if mediaType == "" {
			mediaType = "application/octet-stream"
		}
		w.Header().Set("Content-Type", mediaType)
		w.Header().Set("Docker-Content-Digest", wanted.String())
		http.ServeFile(w, r, filepath.Join(blobs, wanted.Encoded())) //nolint:gosec // G703: hexadecimal digits, of a digest that was checked above
	})
}
