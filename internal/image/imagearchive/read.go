// SPDX-License-Identifier: Apache-2.0

package imagearchive

import (
	"archive/tar"
	"bufio"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"muster.dev/muster/internal/node/loadedimages"
)

// Blobs is where the files of an archive go.
type Blobs interface {
	// Add takes a file in, to its end.
	Add(io.Reader) (digest.Digest, int64, error)
	// Open opens one that was taken in.
	Open(digest.Digest) (*os.File, error)
}

const (
	// maxFiles bounds the files of an archive.
	maxFiles = 65536
	// maxDocument bounds an index, manifest or configuration, in bytes, as registries do.
	maxDocument = 4 << 20
)

// entry is a file of an archive.
type entry struct {
	digest digest.Digest
	size   int64
	link   string // of a symbolic or hard link: the file it leads to
}

// archive is what was read.
type archive struct {
	blobs    Blobs
	files    map[string]entry
	sizes    map[digest.Digest]int64
	platform ocispec.Platform
}

// Read reads the images of a file, or of a directory with an OCI image layout, for a platform. Name is the name of an
// image that has none.
func Read(ctx context.Context, from string, blobs Blobs, platform ocispec.Platform, name string) ([]loadedimages.Image, error) {
	info, err := os.Stat(from)
	if err != nil {
		return nil, err
	}
	a := newArchive(blobs, platform)
	if info.IsDir() {
		if err := a.readDir(ctx, from); err != nil {
			return nil, fmt.Errorf("reading images of the directory %s: %w", from, err)
		}
		return a.images(name)
	}
	file, err := os.Open(from)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	images, err := ReadStream(ctx, file, blobs, platform, name)
	if err != nil {
		return nil, fmt.Errorf("reading images of %s: %w", from, err)
	}
	return images, nil
}

// ReadStream reads the images of an archive.
func ReadStream(ctx context.Context, from io.Reader, blobs Blobs, platform ocispec.Platform, name string) ([]loadedimages.Image, error) {
	a := newArchive(blobs, platform)
	if err := a.readTar(ctx, from); err != nil {
		return nil, err
	}
	return a.images(name)
}

func newArchive(blobs Blobs, platform ocispec.Platform) *archive {
	return &archive{blobs: blobs, files: map[string]entry{}, sizes: map[digest.Digest]int64{}, platform: platform}
}

var errNotArchive = errors.New("it is neither an archive of `docker save` nor an OCI image layout, as a tar, plain or compressed with gzip")

func (a *archive) readTar(ctx context.Context, from io.Reader) error {
	buffered := bufio.NewReaderSize(from, 1<<20)
	var in io.Reader = buffered
	if magic, err := buffered.Peek(2); err == nil && magic[0] == 0x1f && magic[1] == 0x8b {
		unzipped, err := gzip.NewReader(buffered)
		if err != nil {
			return fmt.Errorf("%w: %w", errNotArchive, err)
		}
		in = unzipped
	}
	files := tar.NewReader(in)
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			if len(a.files) == 0 {
				return fmt.Errorf("%w: %w", errNotArchive, err)
			}
			return fmt.Errorf("it ends early or is damaged: %w", err)
		}
		if len(a.files) >= maxFiles {
			return fmt.Errorf("it has more than %d files", maxFiles)
		}
		switch header.Typeflag {
		case tar.TypeReg:
			err = a.add(header.Name, files)
		case tar.TypeSymlink:
			a.files[clean(header.Name)] = entry{link: clean(path.Join(path.Dir(header.Name), header.Linkname))} //nolint:gosec // G305: names of entries in memory; nothing is unpacked
		case tar.TypeLink:
			a.files[clean(header.Name)] = entry{link: clean(header.Linkname)}
		}
		if err != nil {
			return err
		}
	}
}

// readDir reads the files of a layout. Links are not followed: they could lead out of it.
func (a *archive) readDir(ctx context.Context, dir string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	return fs.WalkDir(root.FS(), ".", func(name string, found fs.DirEntry, err error) error {
		if err = errors.Join(err, ctx.Err()); err != nil {
			return err
		}
		if !found.Type().IsRegular() {
			return nil
		}
		if top, _, deep := strings.Cut(name, "/"); deep && top != ocispec.ImageBlobsDir {
			return nil // not a part of the layout
		}
		if len(a.files) >= maxFiles {
			return fmt.Errorf("it has more than %d files", maxFiles)
		}
		file, err := root.Open(name)
		if err != nil {
			return err
		}
		defer func() { _ = file.Close() }()
		return a.add(name, file)
	})
}

func (a *archive) add(name string, content io.Reader) error {
	sum, size, err := a.blobs.Add(content)
	if err != nil {
		return err
	}
	a.files[clean(name)] = entry{digest: sum, size: size}
	a.sizes[sum] = size
	return nil
}

// clean is the name of a file as others refer to it.
func clean(name string) string { return strings.TrimPrefix(path.Clean("/"+name), "/") }

// find finds a file by its name.
func (a *archive) find(name string) (entry, bool) {
	name = clean(name)
	for range 8 { // links may lead to links
		found, ok := a.files[name]
		if !ok || found.link == "" {
			return found, ok
		}
		name = found.link
	}
	return entry{}, false
}

// document reads a small file.
func (a *archive) document(sum digest.Digest) ([]byte, error) {
	if size, ok := a.sizes[sum]; !ok {
		return nil, fmt.Errorf("blob %s is missing", sum)
	} else if size > maxDocument {
		return nil, fmt.Errorf("blob %s has %d bytes: a manifest or configuration has at most %d", sum, size, maxDocument)
	}
	file, err := a.blobs.Open(sum)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	return io.ReadAll(io.LimitReader(file, maxDocument))
}

// images finds the images of what was read.
func (a *archive) images(name string) ([]loadedimages.Image, error) {
	_, layout := a.find(ocispec.ImageLayoutFile)
	index, indexed := a.find(ocispec.ImageIndexFile)
	manifest, docker := a.find("manifest.json")
	var images []loadedimages.Image
	var err error
	switch {
	case layout && indexed:
		images, err = a.ofLayout(index, name)
	case docker:
		images, err = a.ofDocker(manifest, name)
	default:
		return nil, errNotArchive
	}
	if err == nil && len(images) == 0 {
		err = errors.New("there is no image in it")
	}
	return images, err
}
