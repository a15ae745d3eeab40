// SPDX-License-Identifier: Apache-2.0

// Package awsresource has what the services of the account do alike with their resources, whatever a resource is: names
// (ARN), pages of lists, tags as objects keep them and as IAM is asked about them, client tokens, filters, and changes
// that lose nobody's write. Each service adds its own errors.
//
// What happens if
//
//	a request is sent twice with one token      Token.Made finds the object of the first
//	two change an object at once                Change reads it again, and changes what the first left
//	a filter has no field in the answer         FiltersOf does not name it: the service's own function answers
package awsresource
