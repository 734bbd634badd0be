package tidy

// A featureRow is something that the stack must do, or bear, and the tests that show it.
type featureRow struct {
	id    string // how requirements and commits call it
	what  string
	tests string // names of test functions, with spaces between them
}

// featureTables are the tables of rows, each with the marks that docs/testing.md has it
// between.
var featureTables = []struct {
	mark string
	rows []featureRow
}{
	{"bad input", badInputRows},
	{"memory", memoryRows},
	{"resource", resourceRows},
}

// badInputRows are what other implementations got wrong.
var badInputRows = []featureRow{
	{
		"T-LEN", "every opcode with every payload, pad, UDP and IP length around the right one",
		"TestHostileLengths TestHostileLengthsExecuted TestHostileTrailingBytes " +
			"TestHostileLengthsToDevice",
	},
	{
		"T-OPC", "all 256 opcodes to every type in every state; QPN 0, 1, 0xffffff, unknown",
		"TestHostileOpcodes TestHostileRandomHeaders TestHostileOpcodesForNoQP " +
			"TestHostileOpcodesInEveryState",
	},
	{
		"T-FIX", "payloads of fixed size, one byte short and long",
		"TestHostileFixedSizes TestHostileFixedSizeDisagrees",
	},
	{
		"T-2F", "slices used again after the post",
		"TestHostileUseAfterPost",
	},
	{
		"T-SGE", "0 to 33 pieces, lengths and sums up to 2^32",
		"TestHostileSGECount TestHostileSGESums TestHostileSGEPlaces",
	},
	{
		"T-MOD", "every attribute in every state, under traffic",
		"TestHostileModify TestHostileModifyUnderTraffic",
	},
	{
		"T-TMR", "destruction around every timer",
		"TestHostileStopAroundTimers TestHostileStopOfOneEnd TestDestroyAroundTimers",
	},
	{
		"T-ERR", "every step of every create call fails",
		"TestHostileCreateArguments TestHostileSharedCreateArguments " +
			"TestHostileRegistrationFails TestHostileModifyWithoutAttribute " +
			"TestHostileCreateArgumentsOfDevice",
	},
	{
		"T-FAIR", "endless work of one starves nobody",
		"TestFairShares TestDRRIsFair",
	},
	{
		"T-LKEY, T-PD", "keys that are wrong in each way, of each domain",
		"TestHostileLocalKeys TestHostileDomains TestHostileInvalidate",
	},
	{
		"T-FLAG", "every set of access flags",
		"TestEverySetOfFlags",
	},
	{
		"T-ZLEN", "nothing at an address and key that are wrong",
		"TestHostileZeroLength TestEdges TestBindEdges",
	},
	{
		"T-ARITH", "addresses and lengths where 32 or 64 bits end",
		"TestHostileAddressArithmetic TestRangeArithmetic TestEdgesFarAway " +
			"TestSGEOfImpossibleLength",
	},
	{
		"T-BND", "one byte around every border",
		"TestHostileBounds",
	},
	{
		"T-MC", "multicast joined and left under traffic",
		"TestHostileMulticastMembers",
	},
	{
		"T-KEY", "keys, QPNs and PSNs that cannot be guessed",
		"TestHostileKeyRandomness TestHostileKeyGuess TestHostileQPNRandomness " +
			"TestHostileNumbersOfDevice TestHostileRandomnessCanFail",
	},
	{
		"T-SPOOF", "the right numbers from the wrong place",
		"TestHostileSpoofedPackets TestHostileWrongKey TestHostileSpoofedPacketsToDevice",
	},
	{
		"T-CNT", "each attack has its counter",
		"TestHostileCounters",
	},
	{
		"T-RAW", "raw frames never reach other queue pairs",
		"TestHostileRawAndRoCEApart TestHostileRawSend TestHostileRawReceive " +
			"TestHostileRawFrameLengths",
	},
	{
		"T-GARB", "garbage costs little more than traffic, and no memory",
		"TestHostileGarbage TestHostileGarbageToDevice",
	},
	{
		"T-BITS", "one wrong bit in any header, payload or ICRC; and with an ICRC that fits it",
		"TestHostileBitWithOldICRC TestHostileBitOutsideICRC TestHostileBitWithNewICRC",
	},
	{
		"T-PSN", "PSNs at the borders of their regions",
		"TestHostilePSNOfRequest TestHostilePSNOfResponse",
	},
}

// memoryRows are what keys, windows, layouts and paging must do.
var memoryRows = []featureRow{
	{
		"D1", "re-registration: translation, domain, access, in all combinations",
		"TestRegFileCutOff TestRegFileCutOffAtRequester TestRegFileCutOffDatagrams " +
			"TestRegFileCutOffUnderWay TestReregChangeSets TestReregDatagramNeverMixes " +
			"TestReregErrorsLeaveRegionAsItWas TestReregErrorsNameArgument TestReregFile " +
			"TestReregGuarded TestReregIOVA TestReregIgnoresUnnamedArguments " +
			"TestReregNeverMixes TestReregNeverMixesUnderRace TestReregOptionsRefused " +
			"TestReregRefused TestReregSeenByPeer TestReregSync TestReregUnderWay " +
			"TestReregZeroBased",
	},
	{
		"D2", "capabilities of memory windows are told, and true",
		"TestAttrMemoryWindows TestLimitsOfMemoryWindows TestMWTypeOfDevice",
	},
	{
		"D3", "windows of type 1 and 2 are allocated, and of no use unbound",
		"TestAllocWindowRefuses TestMWUnboundGrantsNothing TestWindowUnboundGrantsNothing",
	},
	{
		"D4", "type 1 is bound by the verb; its key rolls",
		"TestBindRefusedKeepsType1 TestBindType1 TestMWBindVerbRefusesAtOnce " +
			"TestMWBindVerbRollsKey TestMWFailedBindKeepsKeyBefore",
	},
	{
		"D5", "type 2B is bound by a work request; bounds, queue pair and domain are its own",
		"TestBindChecks TestBindType2 TestMWRefusedBindEndsQP TestMWType2PeerStaysInside " +
			"TestWindowKeyIsNoLKey TestWindowRightsAndBounds",
	},
	{
		"D6", "type 2A: the queue pair alone",
		"TestBindType2A",
	},
	{
		"D7", "windows are invalidated here, by the peer, by deallocation",
		"TestInvalidateUnboundWindow TestInvalidateWindow TestMWLocalInvalidateFreesWindow " +
			"TestMWOfClosedQP TestMWOutlivesReset TestMWRemoteInvalidateFreesWindow",
	},
	{
		"D8", "a region with bound windows cannot go away",
		"TestDeallocUnbinds TestInvalidateRegionWithWindows TestMWKeepsRegionBusy " +
			"TestWindowFreeHoldsNoRegion",
	},
	{
		"D9", "indirect keys over lists of pieces",
		"TestLayoutEntryLimit TestLayoutManyEntries TestLayoutUnalignedPieces",
	},
	{
		"D10", "layouts of layouts, to a limited depth, without cycles",
		"TestLayoutDepth TestLayoutHoldsItsKeys",
	},
	{
		"D11", "a layout by work request, good for the next one",
		"TestLayoutInvalidate TestLayoutReplacedConcurrently TestUMRCompletion TestUMRFails " +
			"TestUMRHoldsForNextRequest TestUMRLocalInvalidate TestUMRPostRefuses " +
			"TestUMRReplacesLayout TestUMRUnderWay",
	},
	{
		"D12", "interleaved layouts, at the remote side too",
		"TestLayoutAsRemoteKey TestLayoutAtomicWords TestLayoutBlockBounds " +
			"TestLayoutOverlappingBlock",
	},
	{
		"D13", "on-demand regions: nothing touched before it is accessed",
		"TestODPAsksForWholeMessage TestODPAtomicResultPageLeaves TestODPAtomicsBringPagesIn " +
			"TestODPDatagramWaitsForPage TestODPHolesAreRefused TestODPMappedAfterRegistration " +
			"TestODPNeedsPager TestODPOperationsBringPagesIn TestODPReadNeedsItsResultPage " +
			"TestODPReadOfVanishedMemory TestODPReadResponseWaits TestODPReadResultPageLeaves " +
			"TestODPResponderSendsRNR TestODPSendOfUnmappedMemory TestODPSendWaitsForPage " +
			"TestODPSim TestODPUnreliableDropsAtAbsentPage TestODPWaitAllocatesNothing " +
			"TestODPWaitKeepsRetryTimer",
	},
	{
		"D14", "implicit on-demand regions: one key for the address space",
		"TestImplicitODPKey",
	},
	{
		"D15", "on-demand capabilities by transport and operation",
		"TestAttrODP TestODPCapabilitiesAreUsed TestODPCapabilitiesHold " +
			"TestODPCapsFollowKernel TestODPUCLosesMessageAtAbsentPage",
	},
	{
		"D16", "an on-demand region is deregistered like any",
		"TestODPDeregisterWaitsForFaults",
	},
	{
		"D17", "advice: prefetch, for writing, without faults",
		"TestAdviseBringsPagesIn TestAdviseErrors TestAdviseWhileReregistered",
	},
	{
		"D18", "statistics of paging",
		"TestODPCountsPagesThatGoAway TestODPMemoryTakenAwayUnderTraffic",
	},
	{
		"D19", "inline receive, which nobody can tell from another",
		"TestInlineRecvChecksKeysAtArrival TestInlineRecvDeregisterRace " +
			"TestInlineRecvFenceStoresPayload TestInlineRecvFlushKeepsPayload " +
			"TestInlineRecvKeyGone TestInlineRecvLaterMessages TestInlineRecvODPWrittenAtOnce " +
			"TestInlineRecvOff TestInlineRecvOverrun TestInlineRecvPlacedByPoll " +
			"TestInlineRecvSwitches TestInlineRecvTransparent",
	},
	{
		"D20", "memory that the library allocates",
		"TestAllocMR TestAllocMRIsUnmapped TestAllocMRRefused TestAllocMRReregistered " +
			"TestReregAlloc TestReregAllocRefused TestReregAllocUnderWay",
	},
	{
		"D21", "shared and device memory: refused",
		"TestSharedRegionsAreRefused",
	},
	{
		"E1", "a matrix column as one key",
		"TestLayoutColumnDescriptorSize TestLayoutDimensions TestLayoutMatrixColumns",
	},
	{
		"E2", "several regions as one key",
		"TestLayoutOfSeveralRegions",
	},
	{
		"E3", "a layout given to a region, by call and by work request",
		"TestLayoutByCall TestLayoutDomain TestLayoutOfRegionAndBack TestLayoutRefused " +
			"TestLayoutReplacedUnderTraffic",
	},
	{
		"E4", "layouts in every operation, at both ends",
		"TestLayoutTraffic TestLayoutTrafficAllocatesNothing",
	},
}

// resourceRows are about what there is, and how it is shown.
var resourceRows = []featureRow{
	{
		"G24", "objects and connections that come and go leave nothing",
		"TestObjectsAreCounted TestManyConnectionsLeaveNothing",
	},
	{
		"K2", "one process shows what another one has",
		"TestResOfAnotherProcess",
	},
}
