// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"muster.dev/muster/internal/aws/sigv4"
	"muster.dev/muster/internal/iam/ststoken"
)

// Everybody here is a session of one role, as nodes and most people are.
const (
	cluster = "bench"
	account = "111122223333"
	role    = "arn:aws:iam::" + account + ":role/bench"
	region  = "eu-west-1"
	host    = "sts." + region + ".amazonaws.com"

	goodKey    = "ASIA" // and 16 digits
	unknownKey = "ASIX" // of whom nobody knows the secret
	// noSignature is how those signatures begin that nobody made.
	noSignature = "bad0000000000000000000000000000000000000000000000"
	// sessionSize is how long a session token is, in bytes; AWS's have from some 300 to above 1000.
	sessionSize = 400
)

func keyID(begins string, n int) string { return fmt.Sprintf("%s%016d", begins, n) }
func secretOf(id string) string         { return "secret of " + id }
func sessionTokenOf(id string) string   { return strings.Repeat(id, sessionSize/len(id)) }
func sessionNameOf(id string) string    { return "session-" + id[len(goodKey):] }
func userIDOf(string) string            { return "AROA0000000000000BENCH"[:20] }
func sessionARNOf(id string) string {
	return "arn:aws:sts::" + account + ":assumed-role/bench/" + sessionNameOf(id)
}

// newTokens makes n tokens of so many access keys, in turns. No two are the same.
func newTokens(ctx context.Context, n, keys int) ([]string, error) {
	signer, now := v4.NewSigner(), time.Now()
	all := make([]string, n)
	for i := range all {
		id, variant := keyID(goodKey, i%keys), i/keys
		url, err := presign(ctx, signer, id, variant%900+1, now.Add(-time.Duration(variant/900)*time.Second))
		if err != nil {
			return nil, err
		}
		all[i] = ststoken.Encode(url)
	}
	return all, nil
}

func presign(ctx context.Context, signer *v4.Signer, id string, expires int, at time.Time) (string, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet,
		"https://"+host+"/?Action=GetCallerIdentity&Version=2011-06-15&X-Amz-Expires="+strconv.Itoa(expires), http.NoBody)
	if err != nil {
		return "", err
	}
	r.Header.Set(ststoken.ClusterHeader, cluster)
	credentials := aws.Credentials{AccessKeyID: id, SecretAccessKey: secretOf(id), SessionToken: sessionTokenOf(id)}
	url, _, err := signer.PresignHTTP(ctx, credentials, r, sigv4.EmptyPayload, "sts", region, at)
	if err != nil {
		return "", fmt.Errorf("making a token: %w", err)
	}
	return url, nil
}

// badTokens makes tokens that are all refused, quickly: nobody signs them.
type badTokens struct {
	before, id, after string
	// first is a good token of the access key that bad signatures are said to be of. Nobody else uses that key: who
	// asks STS cannot tell its owner from others who know its id, so those wait for each other.
	first string
}

// The ways in which a token is bad.
const (
	badForm      = "form"      // it names a host that is not STS's
	badSignature = "signature" // its access key is known, and did not make it
	badKey       = "key"       // its access key is unknown, and another for each token
)

func newBadTokens(ctx context.Context) (badTokens, error) {
	id := keyID(goodKey, 9_999_999)
	url, err := presign(ctx, v4.NewSigner(), id, 60, time.Now())
	if err != nil {
		return badTokens{}, err
	}
	credential := "X-Amz-Credential=" + id
	before, after, ok := strings.Cut(url, credential)
	after, signature, also := strings.Cut(after, "X-Amz-Signature=")
	if !ok || !also || len(signature) != 64 {
		return badTokens{}, fmt.Errorf("a presigned URL is not as expected: %d bytes", len(url))
	}
	return badTokens{before: before + "X-Amz-Credential=", id: id, after: after + "X-Amz-Signature=", first: ststoken.Encode(url)}, nil
}

// make makes one; no two numbers make the same.
func (b badTokens) make(how string, n int) string {
	before, id := b.before, b.id
	switch how {
	case badForm:
		before = strings.Replace(before, ".amazonaws.com/", ".amazonaws.example/", 1)
	case badKey:
		id = keyID(unknownKey, n)
	}
	url := make([]byte, 0, 2048)
	url = append(append(append(append(url, before...), id...), b.after...), noSignature...)
	for shift := 56; shift >= 0; shift -= 4 { // the last 15 of 64 hex digits
		url = append(url, "0123456789abcdef"[n>>shift&15])
	}
	out := make([]byte, len(ststoken.Prefix)+base64.RawURLEncoding.EncodedLen(len(url)))
	copy(out, ststoken.Prefix)
	base64.RawURLEncoding.Encode(out[len(ststoken.Prefix):], url)
	return string(out)
}
