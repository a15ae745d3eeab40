// SPDX-License-Identifier: Apache-2.0

package imageimport

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	contentapi "github.com/containerd/containerd/api/services/content/v1"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/fieldmaskpb"

	"muster.dev/muster/internal/node/loadedimages"
)

// chunk is how much of a blob is written at once, below the limit of 4 MiB of a message.
const chunk = 1 << 20

// record makes containerd know a blob.
func (i *Importer) record(ctx context.Context, blob ocispec.Descriptor, labels map[string]string) error {
	source := loadedimages.BlobPath(i.config.Dir, blob.Digest)
	info, err := os.Stat(source)
	if err != nil {
		return err
	}
	if info.Size() != blob.Size {
		return fmt.Errorf("it has %d bytes and should have %d", info.Size(), blob.Size)
	}
	known, err := i.content.Info(ctx, &contentapi.InfoRequest{Digest: blob.Digest.String()})
	if err != nil && status.Code(err) != codes.NotFound {
		return err
	}
	if err := i.link(source, blob); err != nil {
		return err
	}
	if known == nil {
		err = i.write(ctx, source, blob, labels)
		if err == nil || status.Code(err) != codes.AlreadyExists {
			return err
		}
	}
	if err := i.keep(ctx, blob); err != nil || len(labels) == 0 {
		return err
	}
	return i.label(ctx, blob, labels)
}

// keep makes the lease keep a blob that another image brought: opening it for writing does so (containerd,
// core/metadata, contentStore.Writer).
func (i *Importer) keep(ctx context.Context, blob ocispec.Descriptor) error {
	err := i.write(ctx, loadedimages.BlobPath(i.config.Dir, blob.Digest), blob, nil)
	if status.Code(err) == codes.AlreadyExists {
		return nil
	}
	return err
}

// link puts a blob where containerd looks for it, unless a file is there already.
func (i *Importer) link(source string, blob ocispec.Descriptor) error {
	path := filepath.Join(i.config.Content, blob.Digest.Algorithm().String(), blob.Digest.Encoded())
	if info, err := os.Stat(path); err == nil && info.Size() == blob.Size {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { //nolint:gosec // G301: as containerd makes it; its parent is private
		return err
	}
	// A link that leads nowhere any more, or a file that was cut short.
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Symlink(source, path); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

// write commits a blob to containerd. Its bytes are sent only if containerd does not take over the file that is there.
func (i *Importer) write(ctx context.Context, source string, blob ocispec.Descriptor, labels map[string]string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := i.content.Write(ctx)
	if err != nil {
		return err
	}
	send := func(request *contentapi.WriteContentRequest) (*contentapi.WriteContentResponse, error) {
		request.Ref, request.Total, request.Expected = "muster-"+blob.Digest.String(), blob.Size, blob.Digest.String()
		if err := stream.Send(request); err != nil && !errors.Is(err, io.EOF) { // EOF means that the answer has the reason
			return nil, err
		}
		return stream.Recv()
	}
	answer, err := send(&contentapi.WriteContentRequest{Action: contentapi.WriteAction_STAT})
	if err != nil {
		return err
	}
	offset := answer.GetOffset()
	if offset < blob.Size {
		if offset, err = copyBlob(source, offset, func(at int64, data []byte) error {
			_, err := send(&contentapi.WriteContentRequest{Action: contentapi.WriteAction_WRITE, Offset: at, Data: data})
			return err
		}); err != nil {
			return err
		}
	}
	_, err = send(&contentapi.WriteContentRequest{Action: contentapi.WriteAction_COMMIT, Offset: offset, Labels: labels})
	return err
}

// copyBlob sends a blob in parts, from an offset on, and returns where it ends.
func copyBlob(source string, offset int64, send func(int64, []byte) error) (int64, error) {
	file, err := os.Open(source)
	if err != nil {
		return 0, err
	}
	defer func() { _ = file.Close() }()
	part := make([]byte, chunk)
	for {
		n, err := file.ReadAt(part, offset)
		if n > 0 {
			if err := send(offset, part[:n]); err != nil {
				return 0, err
			}
			offset += int64(n)
		}
		if errors.Is(err, io.EOF) {
			return offset, nil
		}
		if err != nil {
			return 0, err
		}
	}
}

// label sets labels of a blob that is there already.
func (i *Importer) label(ctx context.Context, blob ocispec.Descriptor, labels map[string]string) error {
	paths := make([]string, 0, len(labels))
	for name := range labels {
		paths = append(paths, "labels."+name)
	}
	_, err := i.content.Update(ctx, &contentapi.UpdateRequest{
		Info: &contentapi.Info{Digest: blob.Digest.String(), Labels: labels}, UpdateMask: &fieldmaskpb.FieldMask{Paths: paths},
	})
	return err
}
