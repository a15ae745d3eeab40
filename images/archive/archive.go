// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/compression"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// Config says what to pack. Args, Labels and Roots may be left out.
type Config struct {
	Binaries     []string          // paths of static executables; in the image each is /<its base name>, and the first is what it runs
	Name         string            // the image's name with a tag
	User         string            // numeric, so that a kubelet can see that runAsNonRoot holds
	Architecture string            // as Go names it
	Args         []string          // default arguments
	Labels       map[string]string // by the keys of https://github.com/opencontainers/image-spec/blob/main/annotations.md
	Roots        bool              // the public certificate authorities, for a program that talks to the Internet
}

// Write packs c.Binaries into an OCI image archive at path, which appears only when it is whole.
func Write(path string, c Config) error {
	img, err := image(c)
	if err != nil {
		return err
	}
	_, tag, ok := strings.Cut(c.Name[strings.LastIndex(c.Name, "/")+1:], ":")
	if !ok || tag == "" {
		return fmt.Errorf("image name %q has no tag; want something like muster.dev/pause:v1", c.Name)
	}

	dir, err := os.MkdirTemp(filepath.Dir(path), "."+filepath.Base(path)+"-")
	if err != nil {
		return fmt.Errorf("making a directory to work in: %w", err)
	}
	defer os.RemoveAll(dir)
	root := filepath.Join(dir, "layout")
	oci, err := layout.Write(root, mutate.IndexMediaType(empty.Index, types.OCIImageIndex))
	if err != nil {
		return fmt.Errorf("writing the image layout: %w", err)
	}
	// containerd takes the whole name from its own annotation; the specified one holds the tag alone.
	// https://github.com/opencontainers/image-spec/blob/main/annotations.md
	if err := oci.AppendImage(img, layout.WithAnnotations(map[string]string{
		"io.containerd.image.name":          c.Name,
		"org.opencontainers.image.ref.name": tag,
	})); err != nil {
		return fmt.Errorf("writing the image: %w", err)
	}

	whole := filepath.Join(dir, "archive.tar")
	if err := pack(whole, root); err != nil {
		return fmt.Errorf("packing the image layout: %w", err)
	}
	if err := os.Rename(whole, path); err != nil {
		return fmt.Errorf("putting the archive in place: %w", err)
	}
	return nil
}

// image builds the one-layer image in memory.
func image(c Config) (v1.Image, error) {
	if len(c.Binaries) == 0 {
		return nil, errors.New("there is no binary to pack")
	}
	var programs []entry
	for _, path := range c.Binaries {
		binary, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("reading the binary: %w", err)
		}
		name := filepath.Base(path)
		if slices.ContainsFunc(programs, func(p entry) bool { return p.name == name }) {
			return nil, fmt.Errorf("two binaries are called %s", name)
		}
		programs = append(programs, entry{name: name, mode: 0o755, content: binary})
	}
	var authorities []byte
	var err error
	if c.Roots {
		if authorities, err = roots(); err != nil {
			return nil, fmt.Errorf("listing the public certificate authorities: %w", err)
		}
	}
	content, err := rootfs(programs, authorities)
	if err != nil {
		return nil, fmt.Errorf("packing the root file system: %w", err)
	}
	// Every machine unpacks every image as it boots: zstd takes two thirds of the time that gzip does, and less room.
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil },
		tarball.WithCompression(compression.ZStd), tarball.WithMediaType(types.OCILayerZStd), tarball.WithCompressedCaching)
	if err != nil {
		return nil, fmt.Errorf("compressing the layer: %w", err)
	}
	base := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	img, err := mutate.ConfigFile(base, &v1.ConfigFile{
		Architecture: c.Architecture,
		OS:           "linux",
		Created:      v1.Time{Time: epoch()},
		RootFS:       v1.RootFS{Type: "layers"},
		Config: v1.Config{
			User:       c.User,
			Env:        []string{"PATH=/"},
			Entrypoint: []string{"/" + programs[0].name},
			Cmd:        c.Args,
			WorkingDir: "/",
			Labels:     c.Labels,
		},
	})
	if err != nil {
		return nil, fmt.Errorf("writing the image's config: %w", err)
	}
	img, err = mutate.Append(img, mutate.Addendum{
		Layer:   layer,
		History: v1.History{Created: v1.Time{Time: epoch()}, CreatedBy: "muster images/archive"},
	})
	if err != nil {
		return nil, fmt.Errorf("adding the layer: %w", err)
	}
	return img, nil
}

// epoch is the time of everything in an archive: when something was packed must not change what it is.
func epoch() time.Time { return time.Unix(0, 0).UTC() }
