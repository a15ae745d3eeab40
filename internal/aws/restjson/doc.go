// SPDX-License-Identifier: Apache-2.0

// Package restjson is the server's side of AWS's protocol restJson1, which EKS, EKS Auth and EFS speak: methods, paths,
// query strings, JSON.
//
// A path is matched as it is escaped, so a label may hold a whole ARN. A body that cannot be read is answered with
// SerializationException, a method and path that belong to no operation with UnknownOperationException, and what is
// required and missing with the error that the service declares for it.
package restjson
