// SPDX-License-Identifier: Apache-2.0

package certificatecontroller

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Numbers of fields (k8s.io/apimachinery/pkg/runtime/generated.proto, k8s.io/api/certificates/v1/generated.proto, and
// k8s.io/apimachinery/pkg/apis/meta/v1/generated.proto).
const (
	unknownTypeMeta, unknownRaw = 1, 2
	csrMetadata, csrStatus      = 1, 3
	metaManagedFields           = 17
)

// answered reads an answer as far as it is news: not the specification, which comes back as it was, nor the managed
// fields, which are half of the work of reading all.
func answered(from io.Reader) (*certificatesv1.CertificateSigningRequest, error) {
	if b, ok := from.(*body); ok { // as nearly always
		return decoded(b.memory.Bytes())
	}
	answer, err := io.ReadAll(from)
	if err != nil {
		return nil, err
	}
	return decoded(answer)
}

func decoded(answer []byte) (*certificatesv1.CertificateSigningRequest, error) {
	wrapped, ok := bytes.CutPrefix(answer, []byte("k8s\x00"))
	if !ok {
		return nil, errors.New("the answer is not a protobuf of Kubernetes")
	}
	var meta runtime.TypeMeta
	var object []byte
	err := fields(wrapped, func(number uint64, field []byte) error {
		switch number {
		case unknownTypeMeta:
			return meta.Unmarshal(field)
		case unknownRaw:
			object = field
		}
		return nil
	})
	out := &certificatesv1.CertificateSigningRequest{}
	switch {
	case err != nil:
		return nil, err
	case meta.APIVersion != certificatesv1.SchemeGroupVersion.String() || meta.Kind != kind().Kind:
		return nil, fmt.Errorf("the answer is a %s of %s", meta.Kind, meta.APIVersion)
	case object == nil:
		return nil, errors.New("the answer holds no object")
	}
	return out, fields(object, func(number uint64, field []byte) error {
		switch number {
		case csrMetadata:
			return out.ObjectMeta.Unmarshal(withoutManagedFields(field))
		case csrStatus:
			return out.Status.Unmarshal(field)
		}
		return nil
	})
}

// withoutManagedFields cuts them off if they are at the end, which is where they are: fields are written in the order
// of their numbers.
func withoutManagedFields(meta []byte) []byte {
	end := len(meta)
	for rest := meta; len(rest) > 0; {
		number, _, next, err := field(rest)
		switch {
		case err != nil:
			return meta // the reader of the body says what is wrong
		case number != metaManagedFields:
			end = len(meta) - len(next)
		}
		rest = next
	}
	return meta[:end]
}

// fields calls a function for each field of a message that is bytes, a text or a message.
func fields(message []byte, do func(number uint64, field []byte) error) error {
	for len(message) > 0 {
		number, value, rest, err := field(message)
		if err == nil && value != nil {
			err = do(number, value)
		}
		if err != nil {
			return err
		}
		message = rest
	}
	return nil
}

// field splits a message behind its first field (protobuf.dev/programming-guides/encoding). The value of a number is
// nil.
func field(message []byte) (number uint64, value, rest []byte, err error) {
	const varint, text = 0, 2 // the other kinds of fields are in none of these messages
	key, n := binary.Uvarint(message)
	if n <= 0 {
		return 0, nil, nil, errors.New("the answer ends within a field")
	}
	rest = message[n:]
	v, n := binary.Uvarint(rest)
	if n <= 0 {
		return 0, nil, nil, errors.New("the answer ends within a field")
	}
	rest = rest[n:]
	switch {
	case key&7 == varint:
		return key >> 3, nil, rest, nil
	case key&7 != text:
		return 0, nil, nil, fmt.Errorf("the answer has a field of kind %d", key&7)
	case v > uint64(len(rest)):
		return 0, nil, nil, errors.New("the answer ends within a field")
	}
	return key >> 3, rest[:v:v], rest[v:], nil
}
