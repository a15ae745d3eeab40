// SPDX-License-Identifier: Apache-2.0

package registrystore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"muster.dev/muster/internal/platform/atomicfile"
	"muster.dev/muster/internal/platform/blobstore"
)

// MaxManifest bounds a manifest, in bytes; registries have to take those of 4 MiB (distribution-spec, "Pushing
// Manifests").
const MaxManifest = 4 << 20

// maxReferences bounds the layers of an image and the images of an index: each is looked up while no other process
// changes the store.
const maxReferences = 1000

// Media types that Docker has for what OCI has, too.
const (
	dockerManifest = "application/vnd.docker.distribution.manifest.v2+json"
	dockerList     = "application/vnd.docker.distribution.manifest.list.v2+json"
)

// Manifest is an image or an index of images in a repository.
type Manifest struct {
	Digest    digest.Digest `json:"digest"`
	MediaType string        `json:"mediaType"`
	// ArtifactType is the manifest's, or else the media type of its configuration.
	ArtifactType string `json:"artifactType,omitempty"`
	// Size is that of all that it refers to and its own, in bytes.
	Size   int64     `json:"size"`
	Pushed time.Time `json:"pushed"`
	// Blobs are its configuration and layers, Children the manifests of an index.
	Blobs    []digest.Digest `json:"blobs,omitempty"`
	Children []digest.Digest `json:"children,omitempty"`
	// Tags that lead to it, sorted.
	Tags []string `json:"-"`
}

var tagForm = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$`)

// CheckTag checks a tag.
func CheckTag(tag string) error {
	if !tagForm.MatchString(tag) {
		return fmt.Errorf("%w tag %.150q: it must have from 1 to 128 letters, digits, or characters of _ . -, and begin with none of the last two", ErrInvalid, tag)
	}
	return nil
}

// CheckDigest checks a digest, whose hash becomes the name of a file.
func CheckDigest(sum digest.Digest) error {
	if err := blobstore.Check(sum); err != nil {
		return fmt.Errorf("%w %w", ErrInvalid, err)
	}
	return nil
}

// document is what is read of a manifest of any kind.
type document struct {
	MediaType    string               `json:"mediaType"`
	ArtifactType string               `json:"artifactType"`
	Config       *ocispec.Descriptor  `json:"config"`
	Layers       []ocispec.Descriptor `json:"layers"`
	Manifests    []ocispec.Descriptor `json:"manifests"`
}

// PutManifest puts a manifest into a repository, under a tag or under its digest.
func (s *Store) PutManifest(ctx context.Context, name, reference, mediaType string, content []byte) (Manifest, error) {
	m := Manifest{Digest: digest.FromBytes(content), MediaType: mediaType, Size: int64(len(content))}
	byDigest := strings.Contains(reference, ":")
	if byDigest && digest.Digest(reference) != m.Digest {
		return m, fmt.Errorf("%w digest %.150s: the manifest's is %s", ErrInvalid, reference, m.Digest)
	}
	if !byDigest {
		if err := CheckTag(reference); err != nil {
			return m, err
		}
	}
	var d document
	if err := json.Unmarshal(content, &d); err != nil {
		return m, fmt.Errorf("%w manifest: %w", ErrInvalid, err)
	}
	if m.MediaType == "" {
		m.MediaType = d.MediaType
	}
	if d.MediaType != "" && d.MediaType != m.MediaType {
		return m, fmt.Errorf("%w manifest: its mediaType is %q, and it is sent as %q", ErrInvalid, d.MediaType, m.MediaType)
	}
	if err := checkKind(m.MediaType, content); err != nil {
		return m, err
	}
	if err := d.check(); err != nil {
		return m, err
	}
	return m, s.locked(ctx, func() error {
		r, err := s.Get(name)
		if err != nil {
			return err
		}
		if err := s.room(); err != nil {
			return err
		}
		if err := s.refer(r.Name, &m, d); err != nil {
			return err
		}
		if !byDigest && r.Immutable {
			if now, err := s.tag(name, reference); err == nil && now != m.Digest {
				return fmt.Errorf("%s: %w", reference, ErrImmutable)
			}
		}
		return s.putManifest(name, reference, byDigest, &m, content)
	})
}

// check refuses what needs no look at the store.
func (d document) check() error {
	if n := max(len(d.Layers), len(d.Manifests)); n > maxReferences {
		return fmt.Errorf("%w manifest: it refers to %d layers or images, and at most %d are allowed", ErrInvalid, n, maxReferences)
	}
	for _, all := range [][]ocispec.Descriptor{d.Layers, d.Manifests} {
		for _, one := range all {
			if one.Size < 0 {
				return fmt.Errorf("%w manifest: %.150s has %d bytes", ErrInvalid, string(one.Digest), one.Size)
			}
			if err := CheckDigest(one.Digest); err != nil {
				return err
			}
		}
	}
	return nil
}

// add adds the size of something that a manifest refers to.
func (m *Manifest) add(size int64) error {
	if size > math.MaxInt64-m.Size {
		return fmt.Errorf("%w manifest: what it refers to has more bytes than can be counted", ErrInvalid)
	}
	m.Size += size
	return nil
}

// refer checks what a manifest refers to, and notes it.
func (s *Store) refer(name string, m *Manifest, d document) error {
	switch m.MediaType {
	case ocispec.MediaTypeImageManifest, dockerManifest:
		if d.Config == nil {
			return fmt.Errorf("%w manifest: it has no config", ErrInvalid)
		}
		if m.ArtifactType = d.ArtifactType; m.ArtifactType == "" {
			m.ArtifactType = d.Config.MediaType
		}
		for _, blob := range append([]ocispec.Descriptor{*d.Config}, d.Layers...) {
			size, err := s.Blob(name, blob.Digest)
			if err != nil {
				return err
			}
			if size != blob.Size {
				return fmt.Errorf("%w manifest: blob %s has %d bytes, and it says %d", ErrInvalid, blob.Digest, size, blob.Size)
			}
			m.Blobs = append(m.Blobs, blob.Digest)
			if err := m.add(size); err != nil {
				return err
			}
		}
	case ocispec.MediaTypeImageIndex, dockerList:
		sizes := map[digest.Digest]int64{}
		for _, child := range d.Manifests {
			if _, seen := sizes[child.Digest]; !seen {
				found, err := s.read(name, child.Digest)
				if err != nil {
					return fmt.Errorf("%w manifest: %w", ErrInvalid, err)
				}
				sizes[child.Digest] = found.Size
			}
			m.Children = append(m.Children, child.Digest)
			if err := m.add(sizes[child.Digest]); err != nil {
				return err
			}
		}
	default:
		return fmt.Errorf("%w manifest: the media type %q is not one of an image or an index of images", ErrInvalid, m.MediaType)
	}
	return nil
}

func (s *Store) putManifest(name, reference string, byDigest bool, m *Manifest, content []byte) error {
	if before, err := s.read(name, m.Digest); err == nil {
		m.Pushed = before.Pushed
	} else {
		m.Pushed = s.now().UTC().Truncate(time.Second)
	}
	if err := s.blobs().Put(m.Digest, content); err != nil {
		return err
	}
	record, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("writing manifest %s: %w", m.Digest, err)
	}
	if err := atomicfile.Write(s.manifest(name, m.Digest), append(record, '\n'), 0o600); err != nil {
		return err
	}
	if byDigest {
		return nil
	}
	return atomicfile.Write(filepath.Join(s.repository(name), "tags", reference), []byte(m.Digest), 0o600)
}

func (s *Store) manifest(name string, sum digest.Digest) string {
	return filepath.Join(s.repository(name), "manifests", sum.Encoded()+".json")
}

// read reads the record of a manifest.
func (s *Store) read(name string, sum digest.Digest) (Manifest, error) {
	var m Manifest
	if err := CheckDigest(sum); err != nil {
		return m, err
	}
	content, err := os.ReadFile(s.manifest(name, sum))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return m, fmt.Errorf("%s@%s: %w", name, sum, ErrNoManifest)
	case err == nil:
		err = json.Unmarshal(content, &m)
	}
	if err != nil {
		return m, fmt.Errorf("reading manifest %s of %s: %w", sum, name, err)
	}
	return m, nil
}

// tag is the digest that a tag leads to.
func (s *Store) tag(name, tag string) (digest.Digest, error) {
	if err := CheckTag(tag); err != nil {
		return "", err
	}
	content, err := os.ReadFile(filepath.Join(s.repository(name), "tags", tag))
	if errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("%s:%s: %w", name, tag, ErrNoManifest)
	}
	if err != nil {
		return "", fmt.Errorf("reading tag %s of %s: %w", tag, name, err)
	}
	return digest.Digest(content), nil
}

// Manifest finds a manifest by a tag or a digest.
func (s *Store) Manifest(name, reference string) (Manifest, []byte, error) {
	if _, err := s.Get(name); err != nil {
		return Manifest{}, nil, err
	}
	sum := digest.Digest(reference)
	if !strings.Contains(reference, ":") {
		var err error
		if sum, err = s.tag(name, reference); err != nil {
			return Manifest{}, nil, err
		}
	}
	m, err := s.read(name, sum)
	if err != nil {
		return m, nil, err
	}
	content, err := os.ReadFile(s.blobs().Path(sum))
	if err != nil {
		return m, nil, fmt.Errorf("reading manifest %s of %s: %w", sum, name, err)
	}
	return m, content, nil
}

// Manifests lists the manifests of a repository by their digests.
func (s *Store) Manifests(name string) ([]Manifest, error) {
	if _, err := s.Get(name); err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(filepath.Join(s.repository(name), "manifests"))
	if err != nil {
		return nil, fmt.Errorf("listing images of %s: %w", name, err)
	}
	tags, err := s.tags(name)
	if err != nil {
		return nil, err
	}
	var all []Manifest
	for _, entry := range entries {
		hash, ok := strings.CutSuffix(entry.Name(), ".json")
		if !ok || strings.HasPrefix(hash, ".") {
			continue
		}
		m, err := s.read(name, digest.NewDigestFromEncoded(digest.SHA256, hash))
		if errors.Is(err, ErrNoManifest) {
			continue
		}
		if err != nil {
			return nil, err
		}
		m.Tags = tags[m.Digest]
		all = append(all, m)
	}
	return all, nil
}

// tags are the tags of a repository, sorted, by what they lead to.
func (s *Store) tags(name string) (map[digest.Digest][]string, error) {
	entries, err := os.ReadDir(filepath.Join(s.repository(name), "tags"))
	if err != nil {
		return nil, fmt.Errorf("listing tags of %s: %w", name, err)
	}
	all := map[digest.Digest][]string{}
	for _, entry := range entries {
		sum, err := s.tag(name, entry.Name())
		if err == nil { // else it is being written or removed
			all[sum] = append(all[sum], entry.Name())
		}
	}
	for _, tags := range all {
		slices.Sort(tags)
	}
	return all, nil
}

// DeleteTag takes a tag away, and reports what it led to. The image goes with its last tag, as ECR has it.
func (s *Store) DeleteTag(ctx context.Context, name, tag string) (sum digest.Digest, err error) {
	return sum, s.locked(ctx, func() error {
		if _, err := s.Get(name); err != nil {
			return err
		}
		if sum, err = s.tag(name, tag); err != nil {
			return err
		}
		tags, err := s.tags(name)
		if err != nil {
			return err
		}
		if len(tags[sum]) <= 1 {
			return s.deleteManifest(name, sum, tags[sum])
		}
		return os.Remove(filepath.Join(s.repository(name), "tags", tag))
	})
}

// DeleteManifest removes an image and all of its tags, which it reports.
func (s *Store) DeleteManifest(ctx context.Context, name string, sum digest.Digest) (tags []string, err error) {
	return tags, s.locked(ctx, func() error {
		if _, err := s.Get(name); err != nil {
			return err
		}
		if _, err := s.read(name, sum); err != nil {
			return err
		}
		all, err := s.tags(name)
		if err != nil {
			return err
		}
		tags = all[sum]
		return s.deleteManifest(name, sum, tags)
	})
}

// ReferencedError is an image that cannot go, since an index has it.
type ReferencedError struct{ By digest.Digest }

func (e *ReferencedError) Error() string { return fmt.Sprintf("the index %s refers to it", e.By) }

func (s *Store) deleteManifest(name string, sum digest.Digest, tags []string) error {
	all, err := s.Manifests(name)
	if err != nil {
		return err
	}
	for _, m := range all {
		if slices.Contains(m.Children, sum) {
			return &ReferencedError{m.Digest}
		}
	}
	for _, tag := range tags {
		if err := os.Remove(filepath.Join(s.repository(name), "tags", tag)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("removing tag %s of %s: %w", tag, name, err)
		}
	}
	if err := os.Remove(s.manifest(name, sum)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing image %s of %s: %w", sum, name, err)
	}
	return nil
}
