// SPDX-License-Identifier: Apache-2.0

package imageimport

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	contentapi "github.com/containerd/containerd/api/services/content/v1"
	imagesapi "github.com/containerd/containerd/api/services/images/v1"
	leasesapi "github.com/containerd/containerd/api/services/leases/v1"
	"github.com/google/go-cmp/cmp"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"muster.dev/muster/internal/node/loadedimages"
)

// containerd answers as containerd 2.4 does where it is asked here: a blob that is in its directory under the expected
// digest is taken over.
type containerd struct {
	contentapi.UnimplementedContentServer
	t   *testing.T
	dir string // of its blobs

	mu       sync.Mutex
	isolated bool // content_sharing_policy
	fail     string
	blobs    map[string]map[string]string // labels, by digest
	written  map[string]string            // bytes that were sent
	images   map[string]*imagesapi.Image
	leases   map[string]bool
}

func (c *containerd) lease(ctx context.Context) {
	headers, _ := metadata.FromIncomingContext(ctx)
	if got := headers.Get(namespaceHeader); len(got) != 1 || got[0] != "k8s.io" {
		c.t.Errorf("namespace %q", got)
	}
	if got := headers.Get(leaseHeader); len(got) != 1 || !c.leases[got[0]] {
		c.t.Errorf("a blob is recorded in the lease %q, which is none of %v", got, c.leases)
	}
}

func (c *containerd) listImages() (*imagesapi.ListImagesResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := &imagesapi.ListImagesResponse{}
	for _, image := range c.images {
		all.Images = append(all.Images, image)
	}
	return all, nil
}

func (c *containerd) createImage(r *imagesapi.CreateImageRequest) (*imagesapi.CreateImageResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.images[r.GetImage().GetName()] != nil {
		return nil, status.Error(codes.AlreadyExists, "exists")
	}
	c.images[r.GetImage().GetName()] = r.GetImage()
	return &imagesapi.CreateImageResponse{}, nil
}

func (c *containerd) Info(_ context.Context, r *contentapi.InfoRequest) (*contentapi.InfoResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if labels, ok := c.blobs[r.GetDigest()]; ok {
		return &contentapi.InfoResponse{Info: &contentapi.Info{Digest: r.GetDigest(), Labels: labels}}, nil
	}
	return nil, status.Error(codes.NotFound, "none")
}

func (c *containerd) Write(stream contentapi.Content_WriteServer) error {
	var sent strings.Builder
	offset := int64(-1)
	for {
		r, err := stream.Recv()
		if err != nil {
			return err
		}
		c.mu.Lock()
		c.lease(stream.Context())
		_, known := c.blobs[r.GetExpected()]
		isolated, fail := c.isolated, c.fail
		c.mu.Unlock()
		switch {
		case known:
			return status.Error(codes.AlreadyExists, "exists")
		case fail != "" && strings.HasSuffix(r.GetRef(), fail):
			return status.Error(codes.Unavailable, "no")
		}
		if offset < 0 {
			offset = 0
			sum := digest.Digest(r.GetExpected())
			if info, err := os.Stat(filepath.Join(c.dir, "sha256", sum.Encoded())); err == nil && info.Size() == r.GetTotal() && !isolated {
				offset = info.Size()
			}
		}
		if r.GetAction() != contentapi.WriteAction_STAT && r.GetOffset() != offset {
			return status.Errorf(codes.OutOfRange, "offset %d, not %d", r.GetOffset(), offset)
		}
		sent.Write(r.GetData())
		offset += int64(len(r.GetData()))
		commit := r.GetAction() == contentapi.WriteAction_COMMIT
		if commit { // as in containerd, the blob is written before the answer
			c.mu.Lock()
			c.blobs[r.GetExpected()], c.written[r.GetExpected()] = r.GetLabels(), sent.String()
			c.mu.Unlock()
		}
		if err := stream.Send(&contentapi.WriteContentResponse{Action: r.GetAction(), Offset: offset}); err != nil {
			return err
		}
		if commit {
			if offset != r.GetTotal() {
				c.t.Errorf("%s committed at %d of %d", r.GetExpected(), offset, r.GetTotal())
			}
			return nil
		}
	}
}

// services are the three, whose methods have the same names.
type (
	contentService struct{ *containerd }
	imageService   struct {
		imagesapi.UnimplementedImagesServer
		c *containerd
	}
	leaseService struct {
		leasesapi.UnimplementedLeasesServer
		c *containerd
	}
)

func (s contentService) Update(_ context.Context, r *contentapi.UpdateRequest) (*contentapi.UpdateResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.blobs[r.GetInfo().GetDigest()] = r.GetInfo().GetLabels()
	return &contentapi.UpdateResponse{}, nil
}

func (s imageService) List(context.Context, *imagesapi.ListImagesRequest) (*imagesapi.ListImagesResponse, error) {
	return s.c.listImages()
}

func (s imageService) Create(_ context.Context, r *imagesapi.CreateImageRequest) (*imagesapi.CreateImageResponse, error) {
	return s.c.createImage(r)
}

func (s imageService) Update(_ context.Context, r *imagesapi.UpdateImageRequest) (*imagesapi.UpdateImageResponse, error) {
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	s.c.images[r.GetImage().GetName()] = r.GetImage()
	return &imagesapi.UpdateImageResponse{}, nil
}

func (s imageService) Delete(_ context.Context, r *imagesapi.DeleteImageRequest) (*emptypb.Empty, error) {
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	delete(s.c.images, r.GetName())
	return &emptypb.Empty{}, nil
}

func (s leaseService) Create(_ context.Context, r *leasesapi.CreateRequest) (*leasesapi.CreateResponse, error) {
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	if end, err := time.Parse(time.RFC3339, r.GetLabels()[labelExpire]); err != nil || end.Before(time.Now()) {
		s.c.t.Errorf("a lease without an end: %v", r.GetLabels())
	}
	s.c.leases[r.GetID()] = true
	return &leasesapi.CreateResponse{Lease: &leasesapi.Lease{ID: r.GetID()}}, nil
}

func (s leaseService) Delete(_ context.Context, r *leasesapi.DeleteRequest) (*emptypb.Empty, error) {
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	delete(s.c.leases, r.GetID())
	return &emptypb.Empty{}, nil
}

func newContainerd(t *testing.T) (*containerd, *Importer) {
	t.Helper()
	c := &containerd{
		t: t, dir: t.TempDir(), blobs: map[string]map[string]string{}, written: map[string]string{}, images: map[string]*imagesapi.Image{}, leases: map[string]bool{},
	}
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	contentapi.RegisterContentServer(server, contentService{c})
	imagesapi.RegisterImagesServer(server, imageService{c: c})
	leasesapi.RegisterLeasesServer(server, leaseService{c: c})
	done := make(chan struct{})
	go func() { defer close(done); _ = server.Serve(listener) }()
	connection, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = connection.Close(); server.Stop(); <-done })
	importer, err := New(Config{Connection: connection, Dir: t.TempDir(), Content: c.dir})
	if err != nil {
		t.Fatal(err)
	}
	return c, importer
}

// blob puts a blob into the directory of images.
func (i *Importer) blob(t *testing.T, content string) ocispec.Descriptor {
	t.Helper()
	d := ocispec.Descriptor{Digest: digest.FromString(content), Size: int64(len(content))}
	path := loadedimages.BlobPath(i.config.Dir, d.Digest)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return d
}

func (i *Importer) image(t *testing.T, name string, layers ...string) loadedimages.Image {
	t.Helper()
	image := loadedimages.Image{Name: name, Manifest: i.blob(t, "manifest"+strings.Join(layers, ",")), Config: i.blob(t, "config"+strings.Join(layers, ","))}
	for _, layer := range layers {
		image.Layers = append(image.Layers, i.blob(t, layer))
	}
	return image
}

func TestImagesAreMadeOfLinks(t *testing.T) {
	for name, isolated := range map[string]bool{"shared": false, "isolated": true} {
		t.Run(name, func(t *testing.T) {
			c, importer := newContainerd(t)
			c.isolated = isolated
			large := strings.Repeat("x", 2*chunk+1)
			image := importer.image(t, "docker.io/library/a:1", "one", large)
			index := loadedimages.Index{Images: []loadedimages.Image{image}}
			for range 2 { // the second time there is nothing to do
				if err := importer.Sync(t.Context(), index); err != nil {
					t.Fatal(err)
				}
			}
			got := c.images[image.Name]
			if got.GetTarget().GetDigest() != image.Manifest.Digest.String() || got.GetLabels()[labelManaged] != "managed" || got.GetLabels()[labelPinned] != "pinned" {
				t.Errorf("image %v", got)
			}
			want := map[string]string{labelConfig: image.Config.Digest.String(), labelLayer + "0": image.Layers[0].Digest.String(), labelLayer + "1": image.Layers[1].Digest.String()}
			if diff := cmp.Diff(want, c.blobs[image.Manifest.Digest.String()]); diff != "" {
				t.Errorf("labels of the manifest: -want +got\n%s", diff)
			}
			for _, blob := range image.Blobs() {
				content, err := os.ReadFile(filepath.Join(c.dir, "sha256", blob.Digest.Encoded()))
				if err != nil || digest.FromBytes(content) != blob.Digest {
					t.Errorf("blob %s: %v", blob.Digest, err)
				}
				sent := c.written[blob.Digest.String()]
				if isolated != (sent != "") || isolated && digest.FromString(sent) != blob.Digest {
					t.Errorf("%d bytes of blob %s were sent", len(sent), blob.Digest)
				}
			}
			if len(c.leases) > 0 {
				t.Errorf("leases are left: %v", c.leases)
			}
		})
	}
}

func TestAnIndexThatChanges(t *testing.T) {
	c, importer := newContainerd(t)
	c.images["docker.io/library/other:1"] = &imagesapi.Image{Name: "docker.io/library/other:1"}
	c.images["docker.io/library/b:1"] = &imagesapi.Image{Name: "docker.io/library/b:1", Labels: map[string]string{"kept": "yes"}} // pulled before
	a, b := importer.image(t, "docker.io/library/a:1", "one"), importer.image(t, "docker.io/library/b:1", "two")
	sync := func(images ...loadedimages.Image) {
		t.Helper()
		if err := importer.Sync(t.Context(), loadedimages.Index{Images: images}); err != nil {
			t.Fatal(err)
		}
	}
	sync(a, b)
	if got := c.images[b.Name]; got.GetTarget().GetDigest() != b.Manifest.Digest.String() || got.GetLabels()["kept"] != "yes" || got.GetLabels()[labelLoaded] == "" {
		t.Errorf("an image that was pulled before: %v", got)
	}
	other := importer.image(t, a.Name, "three")
	sync(other)
	if got := c.images[a.Name].GetTarget().GetDigest(); got != other.Manifest.Digest.String() {
		t.Errorf("a replaced image has the manifest %s", got)
	}
	if len(c.images) != 2 || c.images["docker.io/library/other:1"] == nil {
		t.Errorf("images %v: only what was made here is removed", c.images)
	}
	// A link that leads nowhere any more is made again.
	path := filepath.Join(c.dir, "sha256", b.Layers[0].Digest.Encoded())
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/nowhere", path); err != nil {
		t.Fatal(err)
	}
	sync(other, b)
	if content, err := os.ReadFile(path); err != nil || string(content) != "two" {
		t.Errorf("%q %v", content, err)
	}
}

func TestOneImageThatFailsKeepsNoOther(t *testing.T) {
	c, importer := newContainerd(t)
	a, b := importer.image(t, "docker.io/library/a:1", "one"), importer.image(t, "docker.io/library/b:1", "two")
	c.fail = a.Layers[0].Digest.Encoded()
	index := loadedimages.Index{Images: []loadedimages.Image{a, b}}
	if err := importer.Sync(t.Context(), index); err == nil || !strings.Contains(err.Error(), a.Name) {
		t.Errorf("error %v", err)
	}
	if c.images[a.Name] != nil || c.images[b.Name] == nil || len(c.leases) > 0 {
		t.Errorf("images %v, leases %v", c.images, c.leases)
	}
	c.fail = ""
	if err := importer.Sync(t.Context(), index); err != nil || c.images[a.Name] == nil {
		t.Errorf("the second time: %v", err)
	}
	if err := os.WriteFile(loadedimages.BlobPath(importer.config.Dir, b.Layers[0].Digest), []byte("cut"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := importer.Sync(t.Context(), loadedimages.Index{}); err != nil || len(c.images) > 0 {
		t.Errorf("%v %v", c.images, err)
	}
	delete(c.blobs, b.Layers[0].Digest.String())
	b.Layers[0].Size = 4
	if err := importer.Sync(t.Context(), loadedimages.Index{Images: []loadedimages.Image{b}}); err == nil || !strings.Contains(err.Error(), "should have") {
		t.Errorf("a blob of another size: %v", err)
	}
}
