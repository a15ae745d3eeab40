// SPDX-License-Identifier: Apache-2.0

package hostagent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"muster.dev/muster/internal/image/imagearchive"
	"muster.dev/muster/internal/image/imagestore"
	"muster.dev/muster/internal/node/loadedimages"
)

// Loader loads images that machines of the host have without pulling them.
type Loader interface {
	// Load loads the images of an archive, of those in it that are for the platform of the host. It reads the archive to
	// its end. The error is ErrOtherImages if the archive does not hold the image that it must hold.
	Load(ctx context.Context, ask Load, archive io.Reader) error
	// Unload takes names of images away.
	Unload(ctx context.Context, ask Unload) error
	// Images lists what is loaded.
	Images(ctx context.Context) ([]imagestore.Entry, error)
	// Shown returns the names of the images that machines of a cluster are shown.
	Shown(ctx context.Context, ask Shown) ([]string, error)
}

// ErrOtherImages says that an archive does not hold the image that it must hold.
var ErrOtherImages = errors.New("the archive holds other images")

// Load says for whom the images of an archive are.
type Load struct {
	// Namespaces of the clusters whose machines are to have the images; empty for all clusters.
	Namespaces []string `json:"namespaces,omitempty"`
	// Image is the name of an image that the archive must hold; nothing is loaded if it does not. Empty for any archive.
	Image string `json:"image,omitempty"`
}

// Unload says which names of images are taken away.
type Unload struct {
	Names []string `json:"names"`
	// Namespaces of the clusters that lose them; empty for all clusters.
	Namespaces []string `json:"namespaces,omitempty"`
}

// Shown asks about the machines of the cluster with a namespace.
type Shown struct {
	Namespace string `json:"namespace"`
}

// Images asks for all images.
type Images struct{}

func (a Load) validate() error {
	if a.Image == "" {
		return validNamespaces(a.Namespaces...)
	}
	return errors.Join(validNamespaces(a.Namespaces...), validImage(a.Image))
}

func (a Unload) validate() error {
	err := validNamespaces(a.Namespaces...)
	for _, name := range a.Names {
		err = errors.Join(err, validImage(name))
	}
	return err
}

func (a Shown) validate() error { return validNamespaces(a.Namespace) }

func (a Images) validate() error { return nil }

// validNamespaces refuses names of namespaces that could be paths.
func validNamespaces(names ...string) error {
	for _, name := range names {
		if len(validation.IsDNS1123Label(name)) > 0 {
			return fmt.Errorf("invalid namespace %.100q: must be a DNS label", name)
		}
	}
	return nil
}

func validImage(name string) error {
	if whole, err := imagearchive.Name(name); err != nil || whole != name {
		return fmt.Errorf("invalid name of an image %.100q: must be a whole name with a tag, such as docker.io/library/web:dev", name)
	}
	return nil
}

// Load implements [Loader].
func (h *Agent) Load(ctx context.Context, ask Load, archive io.Reader) error {
	_, err := imagestore.New(h.state).Load(ctx, ask.Namespaces, func(in *imagestore.Ingest) ([]loadedimages.Image, error) {
		images, err := imagearchive.ReadStream(ctx, archive, in, ocispec.Platform{OS: "linux", Architecture: runtime.GOARCH}, "")
		if err != nil {
			return nil, err
		}
		if ask.Image != "" && !slices.ContainsFunc(images, func(image loadedimages.Image) bool { return image.Name == ask.Image }) {
			return nil, fmt.Errorf("%w than %s", ErrOtherImages, ask.Image)
		}
		_, err = io.Copy(io.Discard, archive) // the padding
		return images, err
	})
	return err
}

// Unload implements [Loader].
func (h *Agent) Unload(ctx context.Context, ask Unload) error {
	return imagestore.New(h.state).Remove(ctx, ask.Names, ask.Namespaces)
}

// Images implements [Loader].
func (h *Agent) Images(context.Context) ([]imagestore.Entry, error) {
	return imagestore.New(h.state).List()
}

// Shown implements [Loader].
func (h *Agent) Shown(_ context.Context, ask Shown) ([]string, error) {
	index, _, err := imagestore.New(h.state).Shown(h.state.Cluster(ask.Namespace))
	if err != nil {
		return nil, err
	}
	var names []string
	for _, image := range index.Images {
		names = append(names, image.Name)
	}
	return names, nil
}
