// SPDX-License-Identifier: Apache-2.0

package identityservice

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"net/netip"
	"slices"
	"time"

	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/iamfault"
	awsregion "muster.dev/muster/internal/aws/region"
	"muster.dev/muster/internal/aws/sigv4"
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

// Unsigned is the caller of AssumeRoleWithWebIdentity, whose sender the token proves. All other actions need a
// signature, whatever is registered.
func (s *Service) Unsigned(r *http.Request, service, action string) (awsfront.Caller, error) {
	if service != apiSTS || action != actionWebIdentity {
		return nil, iamfault.Errorf(iamfault.MissingAuthenticationToken, "Request is missing Authentication Token")
	}
	awsfront.RecordOf(r.Context()).Service = service
	return Caller{admitted: s.came(r, s.config.Now())}, nil
}

// sender finds the sender of a request: the key must exist, the signature must be made with it, for this service, and
// now.
func (s *Service) sender(ctx context.Context, r *http.Request, service string, body []byte) (admitted, error) {
	now := s.config.Now()
	record := awsfront.RecordOf(ctx)
	record.Service = service
	sum := sha256.Sum256(body)
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
		return admitted{}, signatureError(err, "")
	}
	record.AccessKey = signed.AccessKeyID
	state, err := s.config.Store.State()
	if err != nil {
		return admitted{}, away(err)
	}
	p, err := s.lookup(state, signed.AccessKeyID, signed.SessionToken, now)
	if err != nil {
		return admitted{}, badToken(err)
	}
	if err := s.scoped(signed, service); err != nil {
		return admitted{}, err
	}
	if err := signed.Verify(sigv4.Derive(p.secret.Reveal(), signed.Scope), request); err != nil {
		return admitted{}, signatureError(err, "The request signature we calculated does not match the signature you provided. "+
			"Check your AWS Secret Access Key and signing method. Consult the service documentation for details.")
	}
	record.Principal = p.arn.String()
	if !s.limits.allow(signed.AccessKeyID, now) { // counted once it is proven: nobody spends another's requests
		return admitted{}, iamfault.Errorf(iamfault.Throttling, "Rate exceeded")
	}
	if err := signed.Current(now, skew); err != nil {
		return admitted{}, expiredSignature(err, signed, now)
	}
	awsfront.Proven(ctx)
	s.used.note(p.keyID, service, signed.Region, now)
	a := s.came(r, now)
	a.principal = p
	return a, nil
}

// came is how a request came.
func (s *Service) came(r *http.Request, now time.Time) admitted {
	a := admitted{region: s.config.Region, now: now, secure: r.TLS != nil, userAgent: r.UserAgent()}
	if source, err := netip.ParseAddrPort(r.RemoteAddr); err == nil {
		a.source = source.Addr()
	}
	return a
}

// scoped reports whether a signature is for a service and a region that it is in. STS and IAM may be signed for the
// global region everywhere, and the price list for the regions that AWS has it in.
func (s *Service) scoped(signed sigv4.Signed, service string) error {
	if signed.Service != service {
		return iamfault.Errorf(iamfault.SignatureDoesNotMatch, "Credential should be scoped to correct service: '%s'.", service)
	}
	global := (service == apiSTS || service == apiIAM) && signed.Region == globalRegion
	priced := service == apiPricing && slices.Contains(awsregion.PricePlaces(), signed.Region)
	if signed.Region != s.config.Region && !global && !priced {
		return iamfault.Errorf(iamfault.SignatureDoesNotMatch, "Credential should be scoped to a valid region, not '%.40s'. There is one here, %s: "+
			"set AWS_REGION to it, as `muster env` does.", signed.Region, s.config.Region)
	}
	return nil
}

// badToken answers credentials that are not good, in AWS's words.
func badToken(err error) error {
	no, ok := errors.AsType[*refused](err)
	switch {
	case !ok:
		return err
	case no.code == iamfault.ExpiredToken:
		return iamfault.Because(err, no.code, "The security token included in the request is expired")
	}
	return iamfault.Because(err, no.code, "The security token included in the request is invalid.")
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
	return iamfault.Because(err, iamfault.Code(r.Code), words)
}

// expiredSignature is what STS says; SDKs set their clock by the Date of the answer then.
func expiredSignature(err error, signed sigv4.Signed, now time.Time) error {
	const layout = "20060102T150405Z"
	at, here := signed.SignedAt.UTC().Format(layout), now.UTC().Format(layout)
	words := "Signature expired: " + at + " is now earlier than " + now.Add(-skew).UTC().Format(layout) + " (" + here + " - 15 min.)"
	if signed.SignedAt.After(now) {
		words = "Signature not yet current: " + at + " is still later than " + now.Add(skew).UTC().Format(layout) + " (" + here + " + 15 min.)"
	}
	return iamfault.Because(err, iamfault.SignatureDoesNotMatch, words)
}

// away says that the management plane cannot be had.
func away(err error) error {
	return iamfault.Because(err, iamfault.ServiceUnavailable, "the management plane does not answer: try again, or see `muster status`")
}
