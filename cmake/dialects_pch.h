// The precompiled header of all that stands on the dialects (lib/, tools/, test/): their classes cost about a second a file
// without it. The dialects' own files keep to pch.h.

#include "cmake/pch.h"

#include "dialects/Par/Placement.h"
#include "dialects/Rt/Rt.h"
#include "dialects/Train/Train.h"
#include "dialects/Tx/Tx.h"
#include "dialects/Zero/Zero.h"
