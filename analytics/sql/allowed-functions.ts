/**
 * Every function that a statement of the data team may use. All of them compute their result from their arguments, the
 * clock or a random number. None reads a file, a table, the network, a dictionary, a setting or the server's state, takes
 * the name of another function or a table as a string, or only waits.
 *
 * Each takes a time that grows with its arguments and no faster: the engine looks at the clock between blocks of rows only. What
 * compares everything in one argument with everything in another is missing (`editDistance`, `multiSearchAny`, `hasAll`), and so is
 * `arrayFold`, which copies what it gathers at each step.
 *
 * Any other name is refused, whatever a later version of ClickHouse adds.
 */

/** Names that the engine's trees use for operators, brackets and special forms. */
const OPERATORS = `
  and array arrayElement CAST concat divide equals exists globalIn globalNotIn globalNotNullIn globalNullIn greater
  greaterOrEquals if ilike in intDiv isDistinctFrom isNotDistinctFrom isNotNull isNull lambda less lessOrEquals like map match
  minus modulo multiIf multiply negate not notEquals notILike notIn notLike notNullIn nullIn or plus tuple tupleElement xor
  caseWithExpr caseWithExpression caseWithoutExpr caseWithoutExpression grouping singleValueOrNull`;

const NUMBERS = `
  abs acos acosh asin asinh atan atan2 atanh avg2 bitAnd bitCount bitNot bitOr bitShiftLeft bitShiftRight bitTest bitXor cbrt
  ceil ceiling clamp cos cosh degrees divideDecimal divideOrNull e erf erfc exp exp10 exp2 factorial floor gcd greatest hypot
  ifNotFinite intDivOrNull intDivOrZero isFinite isInfinite isNaN lcm least lgamma ln log log10 log1p log2 max2 midpoint min2
  mod moduloOrNull moduloOrZero multiplyDecimal pi positiveModulo pow power radians rand rand32 rand64 randCanonical
  randNormal randUniform round roundBankers roundDown roundToExp2 sigmoid sign sin sinh sqr sqrt tan tanh tgamma trunc
  truncate widthBucket width_bucket`;

const NULLS_AND_TYPES = `
  accurateCast accurateCastOrDefault accurateCastOrNull assumeNotNull coalesce firstNonDefault identity ifNull isNullable
  isZeroOrNull materialize nullIf toBool toDate toDate32 toDate32OrDefault toDate32OrNull toDate32OrZero toDateOrDefault
  toDateOrNull toDateOrZero toDateTime toDateTime32 toDateTime64 toDateTime64OrDefault toDateTime64OrNull
  toDateTime64OrZero toDateTimeOrDefault toDateTimeOrNull toDateTimeOrZero toDecimal128 toDecimal128OrNull
  toDecimal128OrZero toDecimal256 toDecimal32 toDecimal32OrNull toDecimal32OrZero toDecimal64 toDecimal64OrNull
  toDecimal64OrZero toDecimalString toFixedString toFloat32 toFloat32OrDefault toFloat32OrNull toFloat32OrZero toFloat64
  toFloat64OrDefault toFloat64OrNull toFloat64OrZero toInt128 toInt128OrNull toInt128OrZero toInt16 toInt16OrDefault
  toInt16OrNull toInt16OrZero toInt256 toInt32 toInt32OrDefault toInt32OrNull toInt32OrZero toInt64 toInt64OrDefault
  toInt64OrNull toInt64OrZero toInt8 toInt8OrDefault toInt8OrNull toInt8OrZero toLowCardinality toNullable toString
  toStringCutToZero toTypeName toUInt128 toUInt128OrNull toUInt128OrZero toUInt16 toUInt16OrDefault toUInt16OrNull
  toUInt16OrZero toUInt256 toUInt32 toUInt32OrDefault toUInt32OrNull toUInt32OrZero toUInt64 toUInt64OrDefault
  toUInt64OrNull toUInt64OrZero toUInt8 toUInt8OrDefault toUInt8OrNull toUInt8OrZero toUUID toUUIDOrDefault toUUIDOrNull
  toUUIDOrZero transform`;

const TIMES = `
  addDate addDays addHours addInterval addMicroseconds addMilliseconds addMinutes addMonths addNanoseconds addQuarters
  addSeconds addTupleOfIntervals addWeeks addYears age changeDay changeHour changeMinute changeMonth changeSecond changeYear
  curdate current_date current_timestamp DATE date_bin date_diff DATE_DIFF DATE_FORMAT DATE_TRUNC dateDiff dateName dateTrunc
  DAY DAYOFMONTH DAYOFWEEK DAYOFYEAR formatDateTime formatDateTimeInJodaSyntax from_utc_timestamp FROM_DAYS FROM_UNIXTIME
  fromDaysSinceYearZero fromModifiedJulianDay fromUnixTimestamp fromUnixTimestamp64Micro fromUnixTimestamp64Milli
  fromUnixTimestamp64Nano fromUnixTimestamp64Second fromUnixTimestampInJodaSyntax fromUTCTimestamp hop hopEnd hopStart HOUR
  LAST_DAY localtimestamp makeDate makeDate32 makeDateTime makeDateTime64 MICROSECOND MILLISECOND MINUTE MONTH monthName
  NANOSECOND now now64 parseDateTime parseDateTime32BestEffort parseDateTime32BestEffortOrNull
  parseDateTime32BestEffortOrZero parseDateTime64BestEffort parseDateTime64BestEffortOrNull parseDateTime64BestEffortOrZero
  parseDateTimeBestEffort parseDateTimeBestEffortOrNull parseDateTimeBestEffortOrZero parseDateTimeInJodaSyntax
  parseDateTimeOrNull parseDateTimeOrZero QUARTER SECOND str_to_date subDate subtractDays subtractHours subtractInterval
  subtractMicroseconds subtractMilliseconds subtractMinutes subtractMonths subtractNanoseconds subtractQuarters
  subtractSeconds subtractTupleOfIntervals subtractWeeks subtractYears time_bucket timeDiff timeSlot timeSlots timestamp
  timestamp_diff TIMESTAMP_DIFF timestampDiff TO_DAYS to_utc_timestamp toDayOfMonth toDayOfWeek toDayOfYear toDaysInMonth
  toDaysSinceYearZero today toHour toInterval toIntervalDay toIntervalHour toIntervalMicrosecond toIntervalMillisecond
  toIntervalMinute toIntervalMonth toIntervalNanosecond toIntervalQuarter toIntervalSecond toIntervalWeek toIntervalYear
  toISOWeek toISOYear toLastDayOfMonth toLastDayOfWeek toMicrosecond toMillisecond toMinute toModifiedJulianDay toMonday
  toMonth toMonthNumSinceEpoch toQuarter toRelativeDayNum toRelativeHourNum toRelativeMinuteNum toRelativeMonthNum
  toRelativeQuarterNum toRelativeSecondNum toRelativeWeekNum toRelativeYearNum toSecond toStartOfDay toStartOfFifteenMinutes
  toStartOfFiveMinute toStartOfFiveMinutes toStartOfHour toStartOfInterval toStartOfISOYear toStartOfMicrosecond
  toStartOfMillisecond toStartOfMinute toStartOfMonth toStartOfNanosecond toStartOfQuarter toStartOfSecond
  toStartOfTenMinutes toStartOfWeek toStartOfYear toTime toTimezone toTimeZone toUnixTimestamp toUnixTimestamp64Micro
  toUnixTimestamp64Milli toUnixTimestamp64Nano toUnixTimestamp64Second toUTCTimestamp toWeek toYear toYearWeek toYYYYMM
  toYYYYMMDD toYYYYMMDDhhmmss tumble tumbleEnd tumbleStart UTC_timestamp UTCTimestamp week YEAR yearweek yesterday
  YYYYMMDDhhmmssToDateTime YYYYMMDDToDate`;

const TEXTS = `
  alphaTokens appendTrailingCharIfAbsent ascii bar base58Decode base58Encode base64Decode base64Encode base64URLDecode
  base64URLEncode bin CHAR_LENGTH char CHARACTER_LENGTH concat_ws concatWithSeparator countMatches
  countMatchesCaseInsensitive countSubstrings countSubstringsCaseInsensitive cutQueryString cutURLParameter cutWWW
  decodeURLComponent domain domainWithoutWWW empty encodeURLComponent endsWith extract extractAll
  extractAllGroups extractAllGroupsHorizontal extractAllGroupsVertical extractGroups extractURLParameter format
  formatReadableDecimalSize formatReadableQuantity formatReadableSize formatReadableTimeDelta FROM_BASE64 generateUUIDv4
  generateUUIDv7 halfMD5 hasSubsequence hasToken hasTokenCaseInsensitive hex initcap initcapUTF8 instr isIPAddressInRange
  isIPv4String isIPv6String isValidASCII isValidJSON isValidUTF8 JSON_ARRAY_LENGTH JSON_EXISTS
  JSON_QUERY JSON_VALUE JSONArrayLength JSONExtract JSONExtractArrayRaw JSONExtractBool JSONExtractFloat JSONExtractInt
  JSONExtractKeys JSONExtractKeysAndValues JSONExtractKeysAndValuesRaw JSONExtractRaw JSONExtractString JSONExtractUInt
  JSONHas JSONKey JSONLength JSONType lcase left leftPad leftPadUTF8 leftUTF8 length lengthUTF8 locate
  lower lowerUTF8 lpad ltrim MD5 mid
  ngramDistance ngrams normalizeUTF8NFC notEmpty OCTET_LENGTH overlay path pathFull port position
  positionCaseInsensitive positionUTF8 printf protocol queryString REGEXP_EXTRACT
  REGEXP_MATCHES REGEXP_REPLACE REGEXP_SUBSTR regexpExtract regexpQuoteMeta removeDiacriticsUTF8 repeat replace replaceAll
  replaceOne replaceRegexpAll replaceRegexpOne reverse reverseUTF8 right rightPad rightPadUTF8 rightUTF8 rpad rtrim SHA1
  SHA256 simpleJSONExtractBool simpleJSONExtractFloat simpleJSONExtractInt simpleJSONExtractRaw simpleJSONExtractString
  simpleJSONExtractUInt simpleJSONHas soundex space splitByAlpha splitByChar splitByNonAlpha splitByRegexp splitByString
  splitByWhitespace startsWith SUBSTRING_INDEX substr substring substringIndex substringUTF8 TO_BASE64 tokens toIPv4 toIPv6
  toJSONString toValidUTF8 translate translateUTF8 trim trimBoth trimLeft trimRight ucase unbin unhex upper upperUTF8
  cityHash64 CRC32 farmHash64 intHash32 intHash64 javaHash murmurHash3_128 murmurHash3_32 murmurHash3_64 sipHash128
  sipHash64 xxHash32 xxHash64 xxh3`;

/** `arrayReduce` and the like are deliberately missing: they take the name of a function as a string. */
const ARRAYS = `
  array_concat_agg array_remove array_to_string arrayAll arrayAUCPR arrayAvg arrayCompact arrayConcat arrayCount arrayCumSum
  arrayCumSumNonNegative arrayDifference arrayDistinct arrayDotProduct arrayElementOrNull arrayEnumerate
  arrayEnumerateDense arrayEnumerateUniq arrayExcept arrayExists arrayFill arrayFilter arrayFirst arrayFirstIndex
  arrayFirstOrNull arrayFlatten arrayIntersect arrayJaccardIndex arrayJoin arrayLast arrayLastIndex
  arrayLastOrNull arrayMap arrayMax arrayMin arrayPartialReverseSort arrayPartialSort arrayPopBack arrayPopFront
  arrayProduct arrayPushBack arrayPushFront arrayRemove arrayResize arrayReverse arrayReverseFill arrayReverseSort
  arrayReverseSplit arrayRotateLeft arrayRotateRight arrayShiftLeft arrayShiftRight arrayShingles arrayShuffle arraySlice
  arraySort arraySplit arrayStringConcat arraySum arraySymmetricDifference arrayUnion arrayUniq arrayWithConstant arrayZip
  arrayZipUnaligned CARDINALITY countEqual cosineDistance dotProduct emptyArrayString extractKeyValuePairs flatten
  flattenTuple has hasAny indexOf L1Distance L1Norm L2Distance L2Norm MAP_FROM_ARRAYS mapAdd mapAll
  mapApply mapConcat mapContains mapContainsKey mapContainsKeyLike mapContainsValue mapExists mapExtractKeyLike mapFilter
  mapFromArrays mapKeys mapPopulateSeries mapReverseSort mapSort mapSubtract mapUpdate mapValues range scalarProduct
  tupleConcat tupleDivide tupleDivideByNumber tupleHammingDistance tupleMinus tupleMultiply tupleMultiplyByNumber
  tupleNames tupleNegate tuplePlus tupleToNameValuePairs unnest`;

/** Aggregate and window functions; `COMBINATORS` may follow. */
const AGGREGATES = `
  any any_respect_nulls any_value anyHeavy anyLast anyLast_respect_nulls approx_top_count approx_top_k approx_top_sum
  argAndMax argAndMin argMax argMin array_agg avg avgWeighted BIT_AND BIT_OR BIT_XOR boundingRatio
  categoricalInformationValue contingency corr corrMatrix corrStable count COVAR_POP COVAR_SAMP covarPop covarPopStable
  covarSamp covarSampStable cramersV cramersVBiasCorrected cume_dist deltaSum deltaSumTimestamp dense_rank denseRank entropy
  exponentialMovingAverage exponentialTimeDecayedAvg exponentialTimeDecayedCount exponentialTimeDecayedMax
  exponentialTimeDecayedSum first_value first_value_respect_nulls group_concat groupArray groupArrayInsertAt
  groupArrayIntersect groupArrayLast groupArrayMovingAvg groupArrayMovingSum groupArraySample groupArraySorted groupBitAnd
  groupBitOr groupBitXor groupConcat groupUniqArray histogram intervalLengthSum kolmogorovSmirnovTest kurtPop kurtSamp lag
  lagInFrame largestTriangleThreeBuckets last_value last_value_respect_nulls lead leadInFrame lttb mannWhitneyUTest max
  max_by maxIntersections maxIntersectionsPosition maxMappedArrays meanZTest median medianBFloat16 medianDD
  medianDeterministic medianExact medianExactHigh medianExactLow medianExactWeighted medianGK medianInterpolatedWeighted
  medianTDigest medianTDigestWeighted medianTiming medianTimingWeighted min min_by minMappedArrays nonNegativeDerivative
  nth_value ntile percent_rank percentRank quantile quantileBFloat16 quantileDD quantileDeterministic quantileExact
  quantileExactExclusive quantileExactHigh quantileExactInclusive quantileExactLow quantileExactWeighted
  quantileExactWeightedInterpolated quantileGK quantileInterpolatedWeighted quantileTDigest quantileTDigestWeighted
  quantileTiming quantileTimingWeighted quantiles quantilesBFloat16 quantilesDD quantilesDeterministic quantilesExact
  quantilesExactExclusive quantilesExactHigh quantilesExactInclusive quantilesExactLow quantilesExactWeighted
  quantilesExactWeightedInterpolated quantilesGK quantilesInterpolatedWeighted quantilesTDigest quantilesTDigestWeighted
  quantilesTiming quantilesTimingWeighted rank rankCorr retention row_number sequenceCount sequenceMatch
  simpleLinearRegression skewPop skewSamp sparkbar STD STDDEV STDDEV_POP STDDEV_SAMP stddevPop stddevPopStable stddevSamp
  stddevSampStable string_agg studentTTest studentTTestOneSample sum sumCount sumKahan sumMapFiltered sumMappedArrays
  sumWithOverflow theilsU topK topKWeighted uniq uniqCombined uniqCombined64 uniqExact uniqHLL12 uniqUpTo VAR_POP VAR_SAMP
  varPop varPopStable varSamp varSampStable welchTTest windowFunnel`;

/**
 * The state combinators (`State`, `Merge`) are deliberately missing: the engine reads a handmade state without checking it.
 */
const COMBINATORS = /(?:If|Array|Map|Distinct|OrNull|OrDefault|ForEach|ArgMin|ArgMax|Resample)$/i;

const listOf = (names: string) => names.trim().split(/\s+/);

export const ALLOWED_FUNCTIONS: readonly string[] = [
  ...[OPERATORS, NUMBERS, NULLS_AND_TYPES, TIMES, TEXTS, ARRAYS, AGGREGATES].flatMap(listOf),
];

/** Computed tables; the statement's limit applies to their rows. */
export const ALLOWED_TABLE_FUNCTIONS: readonly string[] = [
  ...["numbers", "generateSeries", "generate_series", "values"],
];

/**
 * Functions whose second argument is a pattern. It must be a literal: one that is computed is compiled for each row, and may be as
 * long as the text that it is looked for in.
 */
export const PATTERN_FUNCTIONS: readonly string[] = [
  ...["like", "notLike", "ilike", "notILike", "match", "extract", "extractAll", "extractGroups"],
  ...["extractAllGroups", "extractAllGroupsHorizontal", "extractAllGroupsVertical", "countMatches"],
  ...["countMatchesCaseInsensitive", "REGEXP_EXTRACT", "REGEXP_MATCHES", "REGEXP_REPLACE"],
  ...["REGEXP_SUBSTR", "regexpExtract", "replaceRegexpAll", "replaceRegexpOne"],
  ...["mapContainsKeyLike", "mapExtractKeyLike"],
];

// Many names of the engine are case-insensitive. No two of its functions differ by case alone (a test checks this).
const lowered = (names: readonly string[]) => new Set(names.map((name) => name.toLowerCase()));
const functions = lowered(ALLOWED_FUNCTIONS);
const aggregates = lowered(listOf(AGGREGATES));
const tableFunctions = lowered(ALLOWED_TABLE_FUNCTIONS);

export function isAllowedFunction(name: string): boolean {
  return functions.has(name.toLowerCase()) || isAllowedAggregate(name);
}

/** Such as `quantileIf` or `sumDistinctOrNull`. */
function isAllowedAggregate(name: string): boolean {
  if (aggregates.has(name.toLowerCase())) return true;
  const shorter = name.replace(COMBINATORS, "");
  return shorter !== name && isAllowedAggregate(shorter);
}

export function isAllowedTableFunction(name: string): boolean {
  return tableFunctions.has(name.toLowerCase());
}
