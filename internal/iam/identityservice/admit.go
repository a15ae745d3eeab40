// SPDX-License-Identifier: Apache-2.0

package identityservice

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"net/netip"
	"time"

	"muster.dev/muster/internal/iam/awsquery"
	"muster.dev/muster/internal/iam/sigv4"
)

// skew is how far the clocks of clients may be off, as at STS.
const skew = 15 * time.Minute

// admitted is the sender of a request, and how it came.
type admitted struct {
	principal
	region    string // that the account is in
	now       time.Time
	source    netip.Addr
	secure    bool
	userAgent string
}

type admittedKey struct{}

func admittedOf(ctx context.Context) admitted {
	a, _ := ctx.Value(admittedKey{}).(admitted)
	return a
}

// admit finds the sender of a request: the key must exist, the signature must be made with it, and now.
func (s *Service) admit(ctx context.Context, r *http.Request, call awsquery.Call) (context.Context, error) {
	now := s.config.Now()
	line := lineOf(r.Context())
	line.api, line.action = call.API.Name, call.Action
	sum := sha256.Sum256(call.Body)
	request := sigv4.Request{
		Method: r.Method, Host: r.Host, Path: r.URL.EscapedPath(), RawQuery: r.URL.RawQuery, Header: r.Header, PayloadHash: hex.EncodeToString(sum[:]),
	}
	if request.Path == "" {
		request.Path = "/"
	}
	read := sigv4.ReadHeader
	if r.Header.Get("Authorization") == "" && r.URL.Query().Has("X-Amz-Signature") {
		read = sigv4.ReadPresigned
	}
	signed, err := read(request)
	if err != nil {
		return nil, signatureError(err, "")
	}
	line.accessKey = signed.AccessKeyID
	state, err := s.config.Store.State()
	if err != nil {
		return nil, away(err)
	}
	p, err := s.lookup(state, signed.AccessKeyID, signed.SessionToken, now)
	var no *refused
	switch {
	case errors.As(err, &no) && no.code == awsquery.ExpiredToken:
		return nil, &awsquery.Error{Code: no.code, Message: "The security token included in the request is expired", Cause: err}
	case errors.As(err, &no):
		return nil, &awsquery.Error{Code: no.code, Message: "The security token included in the request is invalid.", Cause: err}
	case err != nil:
		return nil, err
	}
	if signed.Service != call.API.Name {
		return nil, awsquery.Errorf(awsquery.SignatureDoesNotMatch, "Credential should be scoped to correct service: '%s'.", call.API.Name)
	}
	if signed.Region != s.config.Region && signed.Region != globalRegion {
		return nil, awsquery.Errorf(awsquery.SignatureDoesNotMatch, "Credential should be scoped to a valid region, not '%.40s'. There is one here, %s: "+
			"set AWS_REGION to it, as `muster iam env` does.", signed.Region, s.config.Region)
	}
	if err := signed.Verify(sigv4.Derive(p.secret.Reveal(), signed.Scope), request); err != nil {
		return nil, signatureError(err, "The request signature we calculated does not match the signature you provided. "+
			"Check your AWS Secret Access Key and signing method. Consult the service documentation for details.")
	}
	line.principal = p.arn.String()
	if !s.limits.allow(signed.AccessKeyID, now) { // counted once it is proven: nobody spends another's requests
		return nil, awsquery.Errorf(awsquery.Throttling, "Rate exceeded")
	}
	if err := signed.Current(now, skew); err != nil {
		return nil, expiredSignature(err, signed, now)
	}
	proven(ctx)
	s.used.note(p.keyID, call.API.Name, signed.Region, now)
	a := admitted{principal: p, region: s.config.Region, now: now, secure: r.TLS != nil, userAgent: r.UserAgent()}
	if source, err := netip.ParseAddrPort(r.RemoteAddr); err == nil {
		a.source = source.Addr()
	}
	return context.WithValue(ctx, admittedKey{}, a), nil
}

// signatureError answers what was wrong with a signature, in AWS's words where tools look for them.
func signatureError(err error, words string) error {
	var r *sigv4.Refusal
	if !errors.As(err, &r) {
		return err
	}
	switch {
	case r.Code == sigv4.CodeMissing:
		words = "Request is missing Authentication Token"
	case words == "":
		words = r.Error()
	}
	return &awsquery.Error{Code: awsquery.Code(r.Code), Message: words, Cause: err}
}

// expiredSignature is what STS says; SDKs set their clock by the Date of the answer then.
func expiredSignature(err error, signed sigv4.Signed, now time.Time) error {
	const layout = "20060102T150405Z"
	at, here := signed.SignedAt.UTC().Format(layout), now.UTC().Format(layout)
	words := "Signature expired: " + at + " is now earlier than " + now.Add(-skew).UTC().Format(layout) + " (" + here + " - 15 min.)"
	if signed.SignedAt.After(now) {
		words = "Signature not yet current: " + at + " is still later than " + now.Add(skew).UTC().Format(layout) + " (" + here + " + 15 min.)"
	}
	return &awsquery.Error{Code: awsquery.SignatureDoesNotMatch, Message: words, Cause: err}
}

// away says that the management plane cannot be had.
func away(err error) error {
	return &awsquery.Error{Code: awsquery.ServiceUnavailable, Message: "the management plane does not answer: try again, or see `muster status`", Cause: err}
}
