// SPDX-License-Identifier: Apache-2.0

package tokensigner

import (
	"context"
	"crypto/ecdsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"
	externaljwt "k8s.io/externaljwt/apis/v1"
	kjson "sigs.k8s.io/json"

	"muster.dev/muster/internal/plane/issuer"
	"muster.dev/muster/internal/plane/tokenkeys"
)

const (
	// refresh is how often the API server asks for the keys. It asks at once about a token whose key it does not know.
	refresh = 30 * time.Second
	// maxClaims bounds the claims of a token, in base64: those of Kubernetes have names of some hundred bytes and a few
	// audiences.
	maxClaims = 64 << 10
)

// signer implements ExternalJWTSigner.
type signer struct {
	externaljwt.UnimplementedExternalJWTSignerServer

	issuer string
	keys   *tokenkeys.Keeper
	// legacy is the public key of tokens in Secrets.
	legacy *externaljwt.Key
	now    func() time.Time
}

var _ externaljwt.ExternalJWTSignerServer = (*signer)(nil)

// header is that of a token, in the order of kube-apiserver's own.
type header struct {
	Algorithm string `json:"alg"`
	KeyID     string `json:"kid"`
	Type      string `json:"typ"`
}

// Sign signs claims with the key that signs now.
func (s *signer) Sign(_ context.Context, asked *externaljwt.SignJWTRequest) (*externaljwt.SignJWTResponse, error) {
	now := s.now()
	if err := s.check(asked.GetClaims(), now); err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	ring, err := s.keys.Ring()
	if err != nil {
		return nil, status.Error(codes.Unavailable, err.Error())
	}
	key := ring.Signer(now)
	raw, err := json.Marshal(header{string(key.Algorithm), key.ID, "JWT"})
	if err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	head := base64.RawURLEncoding.EncodeToString(raw)
	signature, err := key.Sign(head + "." + asked.GetClaims())
	if err != nil {
		return nil, status.Error(codes.Internal, "signing: "+err.Error())
	}
	return &externaljwt.SignJWTResponse{Header: head, Signature: base64.RawURLEncoding.EncodeToString(signature)}, nil
}

// check refuses claims that are not of the cluster's issuer, or that the keys would not be trusted for as long as they
// say.
func (s *signer) check(text string, now time.Time) error {
	if len(text) > maxClaims {
		return fmt.Errorf("the claims have %d bytes, and %d are allowed", len(text), maxClaims)
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil {
		return fmt.Errorf("the claims are not base64 for URLs without padding: %w", err)
	}
	// A map keeps the case of names, which a struct does not. Readers do not agree on which of two claims of one name
	// counts.
	var claims map[string]json.RawMessage
	twice, err := kjson.UnmarshalStrict(raw, &claims)
	if err != nil {
		return fmt.Errorf("the claims are not a JSON object: %w", err)
	}
	if len(twice) > 0 {
		return fmt.Errorf("a claim is there twice: %w", twice[0])
	}
	var iss string
	var exp *int64 // null is a number to the decoder otherwise
	switch {
	case json.Unmarshal(claims["iss"], &iss) != nil || iss != s.issuer:
		return fmt.Errorf("iss is %.256q, and this signs for %s alone", iss, s.issuer)
	case json.Unmarshal(claims["exp"], &exp) != nil || exp == nil:
		return errors.New("exp is not a number of seconds")
	case *exp > now.Add(tokenkeys.MaxExtended+tokenkeys.Skew).Unix():
		return fmt.Errorf("exp is more than %s ahead", tokenkeys.MaxExtended)
	}
	return nil
}

// FetchKeys returns the keys by which the API server verifies tokens. Keys that the issuer does not publish are marked,
// so that the API server leaves them out of its own documents.
func (s *signer) FetchKeys(context.Context, *externaljwt.FetchKeysRequest) (*externaljwt.FetchKeysResponse, error) {
	now := s.now()
	ring, err := s.keys.Ring()
	if err != nil {
		return nil, status.Error(codes.Unavailable, err.Error())
	}
	published := ring.Published(now)
	var keys []*externaljwt.Key
	for _, k := range ring.Trusted(now) {
		der, err := x509.MarshalPKIXPublicKey(k.Public)
		if err != nil {
			return nil, status.Error(codes.Internal, err.Error())
		}
		hidden := !slices.ContainsFunc(published, func(p tokenkeys.Key) bool { return p.ID == k.ID })
		keys = append(keys, &externaljwt.Key{KeyId: k.ID, Key: der, ExcludeFromOidcDiscovery: hidden})
	}
	if !slices.ContainsFunc(keys, func(k *externaljwt.Key) bool { return k.GetKeyId() == s.legacy.GetKeyId() }) {
		keys = append(keys, s.legacy)
	}
	return &externaljwt.FetchKeysResponse{Keys: keys, DataTimestamp: timestamppb.New(now), RefreshHintSeconds: int64(refresh / time.Second)}, nil
}

// Metadata says how long tokens may be good.
func (s *signer) Metadata(context.Context, *externaljwt.MetadataRequest) (*externaljwt.MetadataResponse, error) {
	return &externaljwt.MetadataResponse{MaxTokenExpirationSeconds: int64(tokenkeys.MaxExtended / time.Second)}, nil
}

// legacyKey is the public part of the key of tokens in Secrets.
func legacyKey(private *ecdsa.PrivateKey) (*externaljwt.Key, error) {
	id, err := issuer.KeyID(&private.PublicKey)
	if err != nil {
		return nil, err
	}
	der, err := x509.MarshalPKIXPublicKey(&private.PublicKey)
	if err != nil {
		return nil, err
	}
	return &externaljwt.Key{KeyId: id, Key: der, ExcludeFromOidcDiscovery: true}, nil
}
