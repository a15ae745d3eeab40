// SPDX-License-Identifier: Apache-2.0

package identityservice

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync/atomic"
	"time"

	"muster.dev/muster/internal/iam/iam"
	"muster.dev/muster/internal/iam/webidentity"
)

// Session is temporary credentials and their meaning. Nobody keeps it: its sealed form is the session token.
type Session struct {
	AccessKeyID string
	Secret      iam.Secret
	// PrincipalID is the principal whose permissions it has: AIDA… of GetSessionToken, AROA… of a role.
	PrincipalID string
	// Name of the role session.
	Name string
	// Instance is set on the credentials that the instance metadata service gives a machine, and nowhere else.
	Instance string
	// Policy narrows what the session may do.
	Policy string
	Tags   SessionTags
	// Chained sessions were made with the credentials of another role.
	Chained bool
	// RootKey is the long-lived key that the first of the chain was made with; RootInstance and RootRole the instance
	// and its role; RootPod and RootRole the pod and the role of its association; RootIssuer and RootRole the issuer of
	// the token that it was exchanged for and the role, and RootBound what the token was bound to: nothing if the
	// issuer is not a cluster of the account; RootCluster the namespace of a cluster and RootRole the role that its
	// control plane's Karpenter has. Either RootKey, RootInstance, RootPod, RootIssuer or RootCluster is set.
	RootKey, RootInstance, RootRole, RootIssuer, RootCluster string
	RootPod                                                  PodRoot
	RootBound                                                webidentity.Bound
	// RootService is set instead of these in the session of a service with a role of its own. Such a session is never sealed.
	RootService ServiceRoot
	// SourceIdentity is who it was first made for, as the issuer says; chained sessions keep it.
	SourceIdentity string

	Issued, Expires time.Time
}

// String keeps the secret out of what is printed.
func (s Session) String() string { return "session " + s.AccessKeyID + " of " + s.PrincipalID }

// GoString keeps the secret out of what is printed.
func (s Session) GoString() string { return s.String() }

// LogValue keeps the secret out of logs.
func (s Session) LogValue() slog.Value { return slog.StringValue(s.String()) }

// sealedSession is what is sealed. Names are short because the token goes into every request, and into Kubernetes
// tokens, which have at most 4,096 bytes.
type sealedSession struct {
	AccessKeyID  string     `json:"a"`
	Secret       string     `json:"s"`
	PrincipalID  string     `json:"p"`
	Name         string     `json:"n,omitempty"`
	Instance     string     `json:"i,omitempty"`
	Policy       string     `json:"y,omitempty"`
	Tags         sealedTags `json:"t,omitempty"`
	Transitive   sealedTags `json:"u,omitempty"`
	Chained      bool       `json:"c,omitempty"`
	RootKey      string     `json:"k,omitempty"`
	RootInstance string     `json:"j,omitempty"`
	RootRole     string     `json:"r,omitempty"`
	RootPod      PodRoot    `json:"q,omitzero"`
	RootIssuer   string     `json:"o,omitempty"`
	RootBound    sealedRoot `json:"w,omitzero"`
	RootCluster  string     `json:"x,omitempty"`
	Source       string     `json:"d,omitempty"`
	Issued       int64      `json:"b"`
	Expires      int64      `json:"e"`
}

// sealedRoot is a bound object as it goes into a token: namespace, service account, its uid, pod, its uid.
type sealedRoot [5]string

func sealRoot(b webidentity.Bound) sealedRoot {
	return sealedRoot{b.Namespace, b.ServiceAccount, b.ServiceAccountUID, b.Pod, b.PodUID}
}

func (r sealedRoot) open() webidentity.Bound {
	return webidentity.Bound{Namespace: r[0], ServiceAccount: r[1], ServiceAccountUID: r[2], Pod: r[3], PodUID: r[4]}
}

// Sealer seals sessions with AES-256-GCM under the newest of its keys, and opens what any of them sealed.
type Sealer struct {
	path    string
	current atomic.Pointer[sealKeys]
}

// sealKeys are the keys of a moment.
type sealKeys struct {
	newest  uint32
	keys    map[uint32]cipher.AEAD
	markers map[uint32][]byte // see markerKey
}

const (
	sealVersion = 1
	sealHeader  = 1 + 4 // version, id of the key
	// maxToken is the longest token that is looked at; authenticators look at no longer ones either.
	maxToken = 4096
	// maxSealed is the longest token that is issued: one that is longer does not fit into a Kubernetes token.
	maxSealed = 2048
)

var (
	errToken    = errors.New("the session token was not issued here, or is damaged")
	errTooLarge = errors.New("the session does not fit into its token")
)

func newSealKeys(ring keyring) (*sealKeys, error) {
	s := &sealKeys{keys: map[uint32]cipher.AEAD{}, markers: map[uint32][]byte{}}
	for _, k := range ring {
		block, err := aes.NewCipher(k.Key)
		if err != nil {
			return nil, fmt.Errorf("reading session key as AES: %w", err)
		}
		aead, err := cipher.NewGCM(block)
		if err != nil {
			return nil, fmt.Errorf("reading session key as AES-GCM: %w", err)
		}
		s.keys[k.ID], s.markers[k.ID], s.newest = aead, markerKey(k.Key), k.ID
	}
	if len(s.keys) == 0 {
		return nil, errors.New("there is no key to seal sessions with")
	}
	return s, nil
}

// Seal makes the token of a session.
func (s *Sealer) Seal(session Session) (string, error) {
	plain, err := json.Marshal(sealedSession{
		AccessKeyID: session.AccessKeyID, Secret: session.Secret.Reveal(), PrincipalID: session.PrincipalID, Name: session.Name,
		Instance: session.Instance, Policy: session.Policy, Chained: session.Chained,
		Tags: sealTags(session.Tags.Own), Transitive: sealTags(session.Tags.Transitive),
		RootKey: session.RootKey, RootInstance: session.RootInstance, RootRole: session.RootRole, RootPod: session.RootPod,
		RootIssuer: session.RootIssuer, RootBound: sealRoot(session.RootBound), RootCluster: session.RootCluster, Source: session.SourceIdentity,
		Issued: session.Issued.Unix(), Expires: session.Expires.Unix(),
	})
	if err != nil {
		return "", fmt.Errorf("encoding session: %w", err)
	}
	current := s.current.Load()
	aead := current.keys[current.newest]
	sealed := make([]byte, sealHeader+aead.NonceSize(), sealHeader+aead.NonceSize()+len(plain)+aead.Overhead())
	sealed[0] = sealVersion
	binary.BigEndian.PutUint32(sealed[1:], current.newest)
	if _, err := io.ReadFull(rand.Reader, sealed[sealHeader:]); err != nil {
		return "", fmt.Errorf("sealing session: %w", err)
	}
	sealed = aead.Seal(sealed, sealed[sealHeader:], plain, sealed[:sealHeader]) //nolint:gosec // G407: the nonce is what was just read
	token := base64.RawURLEncoding.EncodeToString(sealed)
	if len(token) > maxSealed {
		return "", errTooLarge
	}
	return token, nil
}

// Open reads the token that belongs to an access key id. It does not look at the time.
func (s *Sealer) Open(accessKeyID, token string) (Session, error) {
	if len(token) > maxToken {
		return Session{}, errToken
	}
	sealed, err := base64.RawURLEncoding.Strict().DecodeString(token)
	if err != nil || len(sealed) < sealHeader || sealed[0] != sealVersion {
		return Session{}, errToken
	}
	aead, ok := s.current.Load().keys[binary.BigEndian.Uint32(sealed[1:])]
	if !ok || len(sealed) < sealHeader+aead.NonceSize() {
		return Session{}, errToken
	}
	nonce, content := sealed[sealHeader:sealHeader+aead.NonceSize()], sealed[sealHeader+aead.NonceSize():]
	plain, err := aead.Open(nil, nonce, content, sealed[:sealHeader])
	if err != nil {
		return Session{}, errToken
	}
	var in sealedSession
	if err := json.Unmarshal(plain, &in); err != nil || in.AccessKeyID != accessKeyID {
		return Session{}, errToken
	}
	return Session{
		AccessKeyID: in.AccessKeyID, Secret: iam.SecretOf(in.Secret), PrincipalID: in.PrincipalID, Name: in.Name,
		Instance: in.Instance, Policy: in.Policy, Chained: in.Chained,
		Tags:    SessionTags{Own: in.Tags.open(), Transitive: in.Transitive.open()},
		RootKey: in.RootKey, RootInstance: in.RootInstance, RootRole: in.RootRole, RootPod: in.RootPod,
		RootIssuer: in.RootIssuer, RootBound: in.RootBound.open(), RootCluster: in.RootCluster, SourceIdentity: in.Source,
		Issued: time.Unix(in.Issued, 0).UTC(), Expires: time.Unix(in.Expires, 0).UTC(),
	}, nil
}
