// SPDX-License-Identifier: Apache-2.0

package imageimport

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	contentapi "github.com/containerd/containerd/api/services/content/v1"
	imagesapi "github.com/containerd/containerd/api/services/images/v1"
	leasesapi "github.com/containerd/containerd/api/services/leases/v1"
	"github.com/containerd/containerd/api/types"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/fieldmaskpb"

	"muster.dev/muster/internal/node/loadedimages"
)

const (
	// namespace of the kubelet's images and containers (containerd, internal/cri/constants).
	namespace = "k8s.io"
	// namespaceHeader and leaseHeader carry the namespace and lease of a call (containerd, pkg/namespaces and
	// core/leases).
	namespaceHeader = "containerd-namespace"
	leaseHeader     = "containerd-lease"

	// labelLoaded marks the images that are made here.
	labelLoaded = "dev.muster/loaded"
	// labelManaged and labelPinned are the CRI plugin's (containerd, internal/cri/labels).
	labelManaged, labelPinned = "io.cri-containerd.image", "io.cri-containerd.pinned"
	// labelExpire bounds a lease that is not ended (containerd, core/metadata).
	labelExpire = "containerd.io/gc.expire"
	// labelConfig and labelLayer keep what a manifest refers to (containerd, core/images, ChildGCLabels).
	labelConfig, labelLayer = "containerd.io/gc.ref.content.config", "containerd.io/gc.ref.content.l."

	leaseTime = 10 * time.Minute
)

// Config is what an Importer needs.
type Config struct {
	// Connection to containerd.
	Connection grpc.ClientConnInterface
	// Dir has the index and the blobs.
	Dir string
	// Content is containerd's directory of blobs, below which those of SHA-256 are in sha256.
	Content string
	Now     func() time.Time // time.Now if nil
}

// Importer makes images of a directory images of containerd.
type Importer struct {
	config  Config
	content contentapi.ContentClient
	images  imagesapi.ImagesClient
	leases  leasesapi.LeasesClient
}

// New makes an Importer. It asks nothing yet.
func New(c Config) (*Importer, error) {
	if c.Connection == nil || c.Dir == "" || c.Content == "" {
		return nil, errors.New("an importer of images needs a connection to containerd, a directory of images and containerd's directory of blobs")
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return &Importer{
		config: c, content: contentapi.NewContentClient(c.Connection), images: imagesapi.NewImagesClient(c.Connection), leases: leasesapi.NewLeasesClient(c.Connection),
	}, nil
}

// Sync makes containerd's images those of the index. It makes images that are missing or have another content, and
// deletes images that it made earlier and that the index no longer has. An image that fails does not keep the others
// from being made.
func (i *Importer) Sync(ctx context.Context, index loadedimages.Index) error {
	ctx = metadata.AppendToOutgoingContext(ctx, namespaceHeader, namespace)
	listed, err := i.images.List(ctx, &imagesapi.ListImagesRequest{})
	if err != nil {
		return fmt.Errorf("listing containerd's images: %w", err)
	}
	present := map[string]*imagesapi.Image{}
	for _, image := range listed.GetImages() {
		present[image.GetName()] = image
	}
	var failures []error
	wanted := map[string]bool{}
	for _, image := range index.Images {
		wanted[image.Name] = true
		if same(present[image.Name], image) {
			continue
		}
		if err := i.add(ctx, image, present[image.Name]); err != nil {
			failures = append(failures, fmt.Errorf("adding image %s: %w", image.Name, err))
		}
	}
	for name, image := range present {
		if _, ours := image.GetLabels()[labelLoaded]; !ours || wanted[name] {
			continue
		}
		if err := i.remove(ctx, name); err != nil {
			failures = append(failures, fmt.Errorf("removing image %s: %w", name, err))
		}
	}
	return errors.Join(failures...)
}

// same reports whether containerd has an image as it was made here.
func same(present *imagesapi.Image, wanted loadedimages.Image) bool {
	_, ours := present.GetLabels()[labelLoaded]
	return ours && present.GetTarget().GetDigest() == wanted.Manifest.Digest.String()
}

// add makes one image. A lease keeps its blobs until the image refers to them.
func (i *Importer) add(ctx context.Context, image loadedimages.Image, before *imagesapi.Image) (err error) {
	lease, err := i.leases.Create(ctx, &leasesapi.CreateRequest{
		ID:     fmt.Sprintf("muster-image-%d", i.config.Now().UnixNano()),
		Labels: map[string]string{labelExpire: i.config.Now().Add(leaseTime).UTC().Format(time.RFC3339)},
	})
	if err != nil {
		return fmt.Errorf("making a lease: %w", err)
	}
	defer func() {
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_, ended := i.leases.Delete(ending, &leasesapi.DeleteRequest{ID: lease.GetLease().GetID()})
		if ended != nil && err == nil {
			err = fmt.Errorf("ending a lease: %w", ended)
		}
	}()
	leased := metadata.AppendToOutgoingContext(ctx, leaseHeader, lease.GetLease().GetID())
	for _, blob := range image.Blobs() {
		labels := map[string]string{}
		if blob.Digest == image.Manifest.Digest {
			labels = children(image)
		}
		if err := i.record(leased, blob, labels); err != nil {
			return fmt.Errorf("recording blob %s: %w", blob.Digest, err)
		}
	}
	return i.point(leased, image, before)
}

// children are the labels by which a manifest keeps its configuration and layers.
func children(image loadedimages.Image) map[string]string {
	labels := map[string]string{labelConfig: image.Config.Digest.String()}
	for n, layer := range image.Layers {
		labels[fmt.Sprint(labelLayer, n)] = layer.Digest.String()
	}
	return labels
}

// point makes the name of an image lead to its manifest.
func (i *Importer) point(ctx context.Context, image loadedimages.Image, before *imagesapi.Image) error {
	now := &imagesapi.Image{
		Name:   image.Name,
		Labels: map[string]string{labelLoaded: "true", labelManaged: "managed", labelPinned: "pinned"},
		Target: &types.Descriptor{MediaType: image.Manifest.MediaType, Digest: image.Manifest.Digest.String(), Size: image.Manifest.Size},
	}
	if before == nil {
		_, err := i.images.Create(ctx, &imagesapi.CreateImageRequest{Image: now})
		if status.Code(err) != codes.AlreadyExists {
			return err
		}
	}
	labels := maps.Clone(before.GetLabels())
	if labels == nil {
		labels = map[string]string{}
	}
	maps.Copy(labels, now.Labels)
	now.Labels = labels
	_, err := i.images.Update(ctx, &imagesapi.UpdateImageRequest{Image: now, UpdateMask: &fieldmaskpb.FieldMask{Paths: []string{"target", "labels"}}})
	return err
}

// remove deletes an image, and what nothing else refers to.
func (i *Importer) remove(ctx context.Context, name string) error {
	_, err := i.images.Delete(ctx, &imagesapi.DeleteImageRequest{Name: name, Sync: true})
	if status.Code(err) == codes.NotFound {
		return nil
	}
	return err
}
