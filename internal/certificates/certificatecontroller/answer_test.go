// SPDX-License-Identifier: Apache-2.0

package certificatecontroller

import (
	"bytes"
	"slices"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/kubernetes/scheme"
)

func fullRequest() *certificatesv1.CertificateSigningRequest {
	at := metav1.NewTime(time.Unix(1_800_000_000, 0))
	managed := metav1.ManagedFieldsEntry{
		Manager: "kubelet", Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "certificates.k8s.io/v1", Time: &at, FieldsType: "FieldsV1",
		FieldsV1: metav1.NewFieldsV1(`{"f:status":{}}`), Subresource: "status",
	}
	return &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{
			Name: "csr-1", GenerateName: "csr-", UID: "uid", ResourceVersion: "8", Generation: 300, CreationTimestamp: at,
			Labels: map[string]string{"a": "b"}, Annotations: map[string]string{"c": "d"}, Finalizers: []string{"example.com/f"},
			OwnerReferences: []metav1.OwnerReference{{Kind: "Node", Name: "n"}}, ManagedFields: []metav1.ManagedFieldsEntry{managed, managed},
		},
		Spec: certificatesv1.CertificateSigningRequestSpec{Username: "u", Request: []byte("request"), SignerName: "example.com/s"},
		Status: certificatesv1.CertificateSigningRequestStatus{
			Certificate: []byte("certificate"),
			Conditions:  []certificatesv1.CertificateSigningRequestCondition{{Type: certificatesv1.CertificateApproved, Status: "True", LastUpdateTime: at}},
		},
	}
}

func encode(t *testing.T, o runtime.Object) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := protobuf.NewSerializer(scheme.Scheme, scheme.Scheme).Encode(o, &out); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func answerOf(t *testing.T, csr *certificatesv1.CertificateSigningRequest) []byte {
	t.Helper()
	csr.SetGroupVersionKind(kind())
	return encode(t, csr)
}

// The part that is read of an answer equals that of reading all.
func TestAnswersAreReadAsFarAsTheyAreNews(t *testing.T) {
	answer := answerOf(t, fullRequest())
	got, err := decoded(answer)
	if err != nil {
		t.Fatal(err)
	}
	want := fullRequest()
	want.ManagedFields, want.Spec = nil, certificatesv1.CertificateSigningRequestSpec{}
	if !equality.Semantic.DeepEqual(got, want) {
		t.Errorf("it is\n%v, want\n%v", got, want)
	}
	clear(answer) // its memory is used again
	if !equality.Semantic.DeepEqual(got, want) {
		t.Error("what was read lies in the memory of the answer")
	}
}

// An answer that ends too soon is none, wherever it ends, unless only what nobody reads is missing.
func TestPartsOfAnAnswerAreNoAnswer(t *testing.T) {
	whole := answerOf(t, fullRequest())
	want, err := decoded(whole)
	if err != nil {
		t.Fatal(err)
	}
	refused := 0
	for n := range whole {
		got, err := decoded(whole[:n])
		switch {
		case err != nil:
			refused++
		case !equality.Semantic.DeepEqual(got, want):
			t.Errorf("the first %d of %d bytes are read as\n%v", n, len(whole), got)
		}
	}
	if refused < len(whole)-10 {
		t.Errorf("%d of %d parts are refused", refused, len(whole))
	}
}

func TestWhatIsNoAnswer(t *testing.T) {
	other := fullRequest()
	status := &metav1.Status{}
	status.SetGroupVersionKind(metav1.SchemeGroupVersion.WithKind("Status"))
	noKind := fullRequest()
	for name, answer := range map[string][]byte{
		"empty":           nil,
		"JSON":            []byte(`{"kind":"CertificateSigningRequest"}`),
		"another kind":    encode(t, status),
		"without a kind":  encode(t, noKind),
		"nothing in it":   []byte("k8s\x00"),
		"a fixed number":  append([]byte("k8s\x00"), 1<<3|1, 0, 0, 0, 0, 0, 0, 0, 0),
		"a long length":   append([]byte("k8s\x00"), 1<<3|2, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01),
		"a longer length": append([]byte("k8s\x00"), slices.Repeat([]byte{0xff}, 20)...),
	} {
		if got, err := decoded(answer); err == nil {
			t.Errorf("%s is read as %v", name, got)
		}
	}
	if _, err := decoded(answerOf(t, other)); err != nil {
		t.Errorf("nothing was wrong: %v", err)
	}
}

// Fields come in the order of their numbers, but nobody promised that.
func TestManagedFieldsInBetween(t *testing.T) {
	managed, name := []byte{metaManagedFields<<3&0x7f | 2 | 0x80, 1, 0}, []byte{1<<3 | 2, 1, 'x'}
	for _, meta := range [][]byte{slices.Concat(managed, name), slices.Concat(name, managed), slices.Concat(managed, name, managed)} {
		var got metav1.ObjectMeta
		if err := got.Unmarshal(withoutManagedFields(meta)); err != nil || got.Name != "x" {
			t.Errorf("%x is read as %v, %v", meta, got, err)
		}
	}
	if got := withoutManagedFields(slices.Concat(name, managed, managed)); !bytes.Equal(got, name) {
		t.Errorf("left is %x", got)
	}
}
