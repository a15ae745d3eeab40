// SPDX-License-Identifier: Apache-2.0

package pullthroughconfig

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/distribution/reference"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"muster.dev/muster/internal/platform/strictyaml"
)

// Config is what registries.yaml says.
type Config struct {
	// Registries that images are pulled from; nil in the file stands for the default.
	Registries []Registry `json:"registries"`
	// DockerConfig is the path of a configuration of the docker command, whose passwords are used; empty for none.
	DockerConfig string `json:"dockerConfig"`
	// MaxSize bounds what is kept.
	MaxSize *resource.Quantity `json:"maxSize"`
}

// Registry is one registry that images are pulled from.
type Registry struct {
	// Name as in names of images: docker.io, registry.example.com:5000.
	Name string `json:"name"`
	// CertificateAuthority is the path of a file of PEM with authorities that are trusted besides the host's.
	CertificateAuthority string `json:"certificateAuthority"`
}

var defaultRegistries = []string{"docker.io", "quay.io", "registry.k8s.io", "ghcr.io", "gcr.io", "public.ecr.aws"}

const (
	defaultMaxSize = "20Gi"
	// minMaxSize holds a few images; less would only pull the same layers again and again.
	minMaxSize = 100 << 20
	// maxRegistries bounds the list.
	maxRegistries = 64
)

// Default is what counts without a file.
func Default() Config {
	size := resource.MustParse(defaultMaxSize)
	c := Config{MaxSize: &size}
	for _, name := range defaultRegistries {
		c.Registries = append(c.Registries, Registry{Name: name})
	}
	return c
}

// Read reads the file at a path; without one it is the default.
func Read(path string) (Config, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return Default(), nil
	}
	if err != nil {
		return Config{}, fmt.Errorf("reading the list of registries: %w", err)
	}
	c, err := Parse(data)
	if err != nil {
		return Config{}, fmt.Errorf("%s: %w", path, err)
	}
	return c, nil
}

// Parse reads and checks the text of a file.
func Parse(data []byte) (Config, error) {
	var c Config
	if err := strictyaml.One(data, "file", "registries, dockerConfig or maxSize", &c, func() field.ErrorList { return c.check() }); err != nil { //nolint:gocritic // c is what was read by then
		return Config{}, err
	}
	rest := Default()
	if c.Registries == nil {
		c.Registries = rest.Registries
	}
	if c.MaxSize == nil {
		c.MaxSize = rest.MaxSize
	}
	return c, nil
}

func (c Config) check() field.ErrorList {
	var errs field.ErrorList
	list := field.NewPath("registries")
	if len(c.Registries) > maxRegistries {
		errs = append(errs, field.TooMany(list, len(c.Registries), maxRegistries))
	}
	seen := map[string]bool{}
	for i, r := range c.Registries {
		at := list.Index(i)
		if !isRegistry(r.Name) {
			errs = append(errs, field.Invalid(at.Child("name"), r.Name, "must be a registry as names of images have it, such as docker.io or registry.example.com:5000"))
		} else if seen[r.Name] {
			errs = append(errs, field.Duplicate(at.Child("name"), r.Name))
		}
		seen[r.Name] = true
		errs = append(errs, checkPath(at.Child("certificateAuthority"), r.CertificateAuthority)...)
	}
	errs = append(errs, checkPath(field.NewPath("dockerConfig"), c.DockerConfig)...)
	if c.MaxSize != nil && c.MaxSize.Value() < minMaxSize {
		errs = append(errs, field.Invalid(field.NewPath("maxSize"), c.MaxSize.String(), "must be at least 100Mi"))
	}
	return errs
}

func checkPath(at *field.Path, path string) field.ErrorList {
	if path != "" && !filepath.IsAbs(path) {
		return field.ErrorList{field.Invalid(at, path, "must be an absolute path")}
	}
	return nil
}

// isRegistry reports whether a name is the registry of an image with a full name.
func isRegistry(name string) bool {
	named, err := reference.ParseNormalizedNamed(name + "/x/y")
	return err == nil && reference.Domain(named) == name && len(name) <= 253
}

// Find finds a registry by its name.
func (c Config) Find(name string) (Registry, bool) {
	i := slices.IndexFunc(c.Registries, func(r Registry) bool { return r.Name == name })
	if i < 0 {
		return Registry{}, false
	}
	return c.Registries[i], true
}

// Names are the names of the registries.
func (c Config) Names() []string {
	names := make([]string, 0, len(c.Registries))
	for _, r := range c.Registries {
		names = append(names, r.Name)
	}
	return names
}
